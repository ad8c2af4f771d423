package transport

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
)

// Verdict is what the engine made of a packet that arrived.
type Verdict uint32

// The verdicts. Those of the table are what a counter of the engine counts.
const (
	Ignored Verdict = iota
	CarriedOut
	Acknowledges
	Kept
	AheadNAK
	AheadDropped
	byCounter // the first of the table
)

var ownVerdicts = [byCounter]string{
	Ignored:      "nothing new: no effect",
	CarriedOut:   "carried out",
	Acknowledges: "acknowledges packets",
	Kept:         "ahead of a missing packet: kept for its turn",
	AheadNAK:     "ahead of a missing packet: NAK sequence error",
	AheadDropped: "ahead of a missing packet: dropped",
}

// countedVerdicts are told by a counter that has moved, the first one that has.
var countedVerdicts = [...]struct {
	text string
	at   func(*Counters) uint64
}{
	{"malformed: dropped", func(c *Counters) uint64 { return c.Malformed }},
	{"no such queue pair: dropped", func(c *Counters) uint64 { return c.UnknownQP }},
	{"opcode of another service: dropped", func(c *Counters) uint64 { return c.WrongService }},
	{"state of the queue pair accepts none: dropped", func(c *Counters) uint64 { return c.WrongState }},
	{"P_Key does not match: dropped", func(c *Counters) uint64 { return c.PKeyViolations }},
	{"Q_Key does not match: dropped", func(c *Counters) uint64 { return c.QKeyViolations }},
	{"not from the peer's address: dropped", func(c *Counters) uint64 { return c.WrongSource }},
	{"not from the peer's UDP port: dropped", func(c *Counters) uint64 { return c.WrongSourcePort }},
	{"congestion notification", func(c *Counters) uint64 { return c.CongestionNotices }},
	{"no receive is posted: datagram dropped", func(c *Counters) uint64 { return c.DiscardedUD }},
	{"no receive is posted: message dropped", func(c *Counters) uint64 { return c.DiscardedUC }},
	{"a packet of the message is missing: message dropped", func(c *Counters) uint64 { return c.BrokenUC }},
	{"differs from the one kept for its PSN: neither is kept", func(c *Counters) uint64 { return c.ConflictingPackets }},
	{"no receive is posted: RNR NAK", func(c *Counters) uint64 { return c.ResponderRNRNAK }},
	{"refused: NAK invalid request", func(c *Counters) uint64 { return c.ResponderInvalidRequestErrors }},
	{"refused: NAK remote access error", func(c *Counters) uint64 { return c.ResponderRemoteAccessErrors }},
	{"refused: NAK remote operational error", func(c *Counters) uint64 { return c.ResponderRemoteOperationErrs }},
	{"duplicate: acknowledged or answered again", func(c *Counters) uint64 { return c.ResponderDuplicateRequests }},
	{"RNR NAK: waits, then sends again", func(c *Counters) uint64 { return c.RequesterRNRNAK }},
	{"NAK sequence error: sends again", func(c *Counters) uint64 { return c.RequesterOutOfOrderNAK }},
	{"NAK invalid request: request failed", func(c *Counters) uint64 { return c.RequesterInvalidRequestErrors }},
	{"NAK remote access error: request failed", func(c *Counters) uint64 { return c.RequesterRemoteAccessErrors }},
	{"NAK remote operational error: request failed", func(c *Counters) uint64 { return c.RequesterRemoteOperationErrs }},
	{"a response before it is missing: sends the request again", func(c *Counters) uint64 { return c.ImpliedNAKs }},
	{"out of window, acknowledges nothing outstanding: dropped", func(c *Counters) uint64 { return c.GhostACKs }},
}

func (v Verdict) String() string {
	switch i := int(v) - int(byCounter); {
	case v < byCounter:
		return ownVerdicts[v]
	case i < len(countedVerdicts):
		return countedVerdicts[i].text
	}
	return fmt.Sprintf("verdict %d", uint32(v))
}

// verdictOf tells a verdict from what an engine counted, and how far the queue pair got.
func verdictOf(before, after *Counters, was, is position) Verdict {
	for i := range countedVerdicts {
		if at := countedVerdicts[i].at; at(before) != at(after) {
			return byCounter + Verdict(i)
		}
	}
	switch {
	case before.ResponderOutOfOrder == after.ResponderOutOfOrder:
	case is.kept > was.kept:
		return Kept
	case is.nakSent && !was.nakSent:
		return AheadNAK
	default:
		return AheadDropped
	}
	switch {
	case is.expected != was.expected:
		return CarriedOut
	case is.una != was.una:
		return Acknowledges
	}
	return Ignored
}

// Reason is why a packet was sent: in its low byte what it is, and above, if it was sent again or is a NAK, the number of time-outs or
// the syndrome.
type Reason uint32

// What packets are.
const (
	First Reason = iota // a request's packet for the first time
	AgainTimeout
	AgainProbe
	AgainNAK
	Again
	Response
	Acknowledgement
	Refusal
	Notice
)

var reasonTexts = [...]string{
	First: "request", AgainTimeout: "retransmission, time-out", AgainProbe: "retransmission, probe",
	AgainNAK: "retransmission, after a NAK", Again: "retransmission", Response: "response", Acknowledgement: "acknowledgement",
	Refusal: "NAK", Notice: "congestion notification",
}

func (r Reason) String() string {
	what, detail := r&0xff, uint32(r>>8)
	if int(what) >= len(reasonTexts) {
		return fmt.Sprintf("reason %d", uint32(r))
	}
	switch what {
	case AgainTimeout:
		return fmt.Sprintf("%s %d", reasonTexts[what], detail)
	case Refusal:
		return ib.Syndrome(detail).String()
	}
	return reasonTexts[what]
}

// reasonOf tells why a packet leaves. rest is what follows its BTH, and before where the queue pair was.
func reasonOf(op ib.Opcode, psn ib.PSN, rest []byte, before position) Reason {
	rc := op.Of(ib.ServiceRC)
	switch {
	case op == ib.CNP:
		return Notice
	case rc == ib.RCAcknowledge && len(rest) >= ib.AETHLen:
		if s := ib.AETH(rest).Syndrome(); !s.IsACK() {
			return Refusal | Reason(s)<<8
		}
		return Acknowledgement
	case rc.IsResponse():
		return Response
	case op.Service() != ib.ServiceRC && op.Service() != ib.ServiceXRC || !psn.Before(before.max):
		return First
	case before.probing:
		return AgainProbe
	case before.timeouts > 0:
		return AgainTimeout | Reason(before.timeouts)<<8
	case before.nakSeen:
		return AgainNAK
	}
	return Again
}
