package cm

import "fmt"

// Reason is a REJ reason code (IBA 12.6.7.2) or, in the UDP port space, a
// SIDR_REP status (IBA 12.11.2.2).
type Reason uint16

// The reject reasons that the engine gives or handles.
const (
	RejectNoQP             Reason = 1
	RejectNoResources      Reason = 3
	RejectTimeout          Reason = 4
	RejectUnsupported      Reason = 5
	RejectInvalidID        Reason = 6
	RejectInvalidInstance  Reason = 7
	RejectInvalidServiceID Reason = 8
	RejectTransportType    Reason = 9
	RejectStale            Reason = 10
	RejectPrimaryGID       Reason = 12
	RejectMTU              Reason = 26
	RejectConsumer         Reason = 28
	RejectDuplicateID      Reason = 30
	RejectClassVersion     Reason = 31
)

// The statuses of SIDR_REP.
const (
	SIDRValid              Reason = 0
	SIDRUnsupportedService Reason = 1
	SIDRRejected           Reason = 2
	SIDRNoQP               Reason = 3
	SIDRRedirected         Reason = 4
	SIDRUnsupportedVersion Reason = 5
)

var reasonNames = map[Reason]string{
	1: "no QP available", 2: "no EEC available", 3: "no resources available", 4: "time-out", 5: "unsupported request",
	6: "invalid communication ID", 7: "invalid communication instance", 8: "invalid service ID",
	9: "invalid transport service type", 10: "stale connection", 11: "RDC does not exist",
	12: "primary remote port GID rejected", 13: "primary remote port LID rejected", 14: "invalid primary SL",
	15: "invalid primary traffic class", 16: "invalid primary hop limit", 17: "invalid primary packet rate",
	18: "alternate remote port GID rejected", 19: "alternate remote port LID rejected", 20: "invalid alternate SL",
	21: "invalid alternate traffic class", 22: "invalid alternate hop limit", 23: "invalid alternate packet rate",
	24: "port and CM redirection", 25: "port redirection", 26: "invalid path MTU",
	27: "insufficient responder resources", 28: "consumer reject", 29: "RNR retry count reject",
	30: "duplicate local communication ID", 31: "invalid class version", 32: "invalid primary flow label",
	33: "invalid alternate flow label",
}

// String is the reason in words, for REJ codes.
func (r Reason) String() string {
	if s, ok := reasonNames[r]; ok {
		return fmt.Sprintf("%d (%s)", uint16(r), s)
	}
	return fmt.Sprint(uint16(r))
}
