package mad

import "fmt"

// RejectReason is why a REJ was sent (IBA 12.6.7.2, table "REJ Message Rejection Reasons").
type RejectReason uint16

// The reject reasons. 34 is reserved.
const (
	RejectNoQP                     RejectReason = 1
	RejectNoEEC                    RejectReason = 2
	RejectNoResources              RejectReason = 3
	RejectTimeout                  RejectReason = 4
	RejectUnsupported              RejectReason = 5
	RejectInvalidCommID            RejectReason = 6
	RejectInvalidCommInstance      RejectReason = 7
	RejectInvalidServiceID         RejectReason = 8 // nobody listens
	RejectInvalidTransportType     RejectReason = 9
	RejectStaleConnection          RejectReason = 10
	RejectRDCMissing               RejectReason = 11
	RejectInvalidGID               RejectReason = 12
	RejectInvalidLID               RejectReason = 13
	RejectInvalidSL                RejectReason = 14
	RejectInvalidTrafficClass      RejectReason = 15
	RejectInvalidHopLimit          RejectReason = 16
	RejectInvalidPacketRate        RejectReason = 17
	RejectInvalidAltGID            RejectReason = 18
	RejectInvalidAltLID            RejectReason = 19
	RejectInvalidAltSL             RejectReason = 20
	RejectInvalidAltTrafficClass   RejectReason = 21
	RejectInvalidAltHopLimit       RejectReason = 22
	RejectInvalidAltPacketRate     RejectReason = 23
	RejectPortCMRedirect           RejectReason = 24
	RejectPortRedirect             RejectReason = 25
	RejectInvalidMTU               RejectReason = 26 // Info holds an acceptable MTU
	RejectInsufficientResources    RejectReason = 27 // responder resources
	RejectConsumer                 RejectReason = 28 // the listening program said no
	RejectRNRRetryCount            RejectReason = 29
	RejectDuplicateCommID          RejectReason = 30
	RejectInvalidClassVersion      RejectReason = 31
	RejectInvalidFlowLabel         RejectReason = 32
	RejectInvalidAltFlowLabel      RejectReason = 33
	RejectVendorOptionNotSupported RejectReason = 35
)

var rejectNames = [...]string{
	RejectNoQP:                     "no QP available",
	RejectNoEEC:                    "no EEC available",
	RejectNoResources:              "no resources available",
	RejectTimeout:                  "timeout",
	RejectUnsupported:              "unsupported request",
	RejectInvalidCommID:            "invalid communication ID",
	RejectInvalidCommInstance:      "invalid communication instance",
	RejectInvalidServiceID:         "invalid service ID",
	RejectInvalidTransportType:     "invalid transport service type",
	RejectStaleConnection:          "stale connection",
	RejectRDCMissing:               "RDC does not exist",
	RejectInvalidGID:               "primary remote port GID rejected",
	RejectInvalidLID:               "primary remote port LID rejected",
	RejectInvalidSL:                "invalid primary SL",
	RejectInvalidTrafficClass:      "invalid primary traffic class",
	RejectInvalidHopLimit:          "invalid primary hop limit",
	RejectInvalidPacketRate:        "invalid primary packet rate",
	RejectInvalidAltGID:            "alternate remote port GID rejected",
	RejectInvalidAltLID:            "alternate remote port LID rejected",
	RejectInvalidAltSL:             "invalid alternate SL",
	RejectInvalidAltTrafficClass:   "invalid alternate traffic class",
	RejectInvalidAltHopLimit:       "invalid alternate hop limit",
	RejectInvalidAltPacketRate:     "invalid alternate packet rate",
	RejectPortCMRedirect:           "port and CM redirection",
	RejectPortRedirect:             "port redirection",
	RejectInvalidMTU:               "invalid path MTU",
	RejectInsufficientResources:    "insufficient responder resources",
	RejectConsumer:                 "consumer reject",
	RejectRNRRetryCount:            "RNR retry count reject",
	RejectDuplicateCommID:          "duplicate local communication ID",
	RejectInvalidClassVersion:      "invalid class version",
	RejectInvalidFlowLabel:         "invalid primary flow label",
	RejectInvalidAltFlowLabel:      "invalid alternate flow label",
	RejectVendorOptionNotSupported: "vendor option is not supported",
}

// String returns the reason in words, or its number if it has no name.
func (r RejectReason) String() string {
	if int(r) < len(rejectNames) && rejectNames[r] != "" {
		return rejectNames[r]
	}
	return fmt.Sprintf("reject reason %d", uint16(r))
}
