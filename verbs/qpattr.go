package verbs

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// QPMask selects fields of a QPAttr.
type QPMask uint32

// The fields of QPMask.
const (
	MaskState              = QPMask(command.MaskState)
	MaskAccess             = QPMask(command.MaskAccess)
	MaskPKeyIndex          = QPMask(command.MaskPKey)
	MaskQKey               = QPMask(command.MaskQKey)
	MaskAV                 = QPMask(command.MaskRoute)
	MaskMTU                = QPMask(command.MaskMTU)
	MaskTimeout            = QPMask(command.MaskTimeout)
	MaskRetry              = QPMask(command.MaskRetry)
	MaskRNRRetry           = QPMask(command.MaskRNRRetry)
	MaskMinRNRTimer        = QPMask(command.MaskMinRNRTimer)
	MaskRQPSN              = QPMask(command.MaskRQPSN)
	MaskSQPSN              = QPMask(command.MaskSQPSN)
	MaskInitiatorDepth     = QPMask(command.MaskInitiatorDepth)
	MaskResponderResources = QPMask(command.MaskResponderResources)
	MaskDestQPN            = QPMask(command.MaskDestQPN)
	MaskFlowControl        = QPMask(command.MaskFlowControl)
	MaskSQDNotify          = QPMask(command.MaskSQDNotify)
)

// QPAttr are the attributes of a QP (IBA 11.2.5.2).
type QPAttr struct {
	State              QPState
	Access             Access // RemoteWrite, RemoteRead, RemoteAtomic, FlushGlobal: what peers may do at all
	PKeyIndex          int
	QKey               uint32
	AV                 AddressVector
	MTU                int   // payload bytes: 256, 512, 1024, 2048 or 4096
	Timeout            uint8 // local ACK timeout: 4.096 us * 2^Timeout, 0: none
	Retry              uint8 // 0 to 7
	RNRRetry           uint8 // 0 to 7; 7: without limit
	MinRNRTimer        uint8 // code 0 to 31
	RQPSN, SQPSN       uint32
	InitiatorDepth     uint8
	ResponderResources uint8
	DestQPN            uint32
	FlowControl        bool
	SQDNotify          bool
}

// Modify changes the attributes selected by mask. IBA 11.2.5.2 defines the legal transitions and the
// attributes that each requires: ErrState and ErrInvalid.
func (qp *QP) Modify(a QPAttr, mask QPMask) error {
	m := command.ModifyQP{
		QP: qp.handle, Mask: command.QPMask(mask), State: command.QPState(a.State), Access: uint32(a.Access),
		QKey: a.QKey, Timeout: a.Timeout, Retry: a.Retry, RNRRetry: a.RNRRetry, MinRNRTimer: a.MinRNRTimer,
		RQPSN: a.RQPSN, SQPSN: a.SQPSN, InitiatorDepth: a.InitiatorDepth,
		ResponderResources: a.ResponderResources, DestQPN: a.DestQPN,
	}
	if mask&MaskPKeyIndex != 0 {
		if a.PKeyIndex < 0 {
			return newError("modify qp", ErrInvalid, "PKeyIndex is %d, want a row of the P_Key table", a.PKeyIndex)
		}
		m.PKeyIndex = uint32(a.PKeyIndex)
	}
	if mask&MaskMTU != 0 {
		switch a.MTU {
		case 256, 512, 1024, 2048, 4096:
		default:
			return newError("modify qp", ErrInvalid, "MTU is %d, want 256, 512, 1024, 2048 or 4096", a.MTU)
		}
		m.MTU = uint32(a.MTU)
	}
	if mask&MaskAV != 0 {
		av, err := a.AV.command("modify qp")
		if err != nil {
			return err
		}
		m.Route = av
	}
	if a.FlowControl {
		m.FlowControl = 1
	}
	if a.SQDNotify {
		m.SQDNotify = 1
	}
	h := qp.pd.dev.host
	if mask&MaskState != 0 && a.State > StateInit {
		qp.inUse.Store(true)
	}
	if err := h.backend.ModifyQP(h.ctx, m); err != nil {
		return wrap("modify qp", err)
	}
	if mask&MaskState != 0 && a.State == StateReset { // its requests are dropped without completions (IBA 10.3.1)
		if qp.cfg.SendCQ != nil {
			qp.cfg.SendCQ.vacate(qp, 0, &qp.sends)
		}
		if qp.cfg.receives() {
			qp.cfg.RecvCQ.vacate(qp, ring.ReceiveSide, &qp.receives)
		}
	}
	return nil
}

func attrFrom(m *command.ModifyQP) QPAttr {
	return QPAttr{
		State: QPState(m.State), Access: Access(m.Access), PKeyIndex: int(m.PKeyIndex), QKey: m.QKey,
		AV: vectorFrom(&m.Route), MTU: int(m.MTU), Timeout: m.Timeout, Retry: m.Retry, RNRRetry: m.RNRRetry,
		MinRNRTimer: m.MinRNRTimer, RQPSN: m.RQPSN, SQPSN: m.SQPSN, InitiatorDepth: m.InitiatorDepth,
		ResponderResources: m.ResponderResources, DestQPN: m.DestQPN,
		FlowControl: m.FlowControl != 0, SQDNotify: m.SQDNotify != 0,
	}
}

// RateLimit is the most that a QP sends.
type RateLimit struct {
	// Rate is in kbit/s of packets with all their headers, from the Ethernet header to the FCS; 0: no limit.
	Rate uint32
	// MaxBurst is how many bytes may leave at once after a pause; 0: what the rate makes in a millisecond. A packet that is longer
	// leaves as a whole.
	MaxBurst uint32
	// TypicalPacket is how long packets are, for adapters that estimate that. This one counts each.
	TypicalPacket uint16
}

// SetRateLimit limits the rate of what a QP sends from its send queue, at once; what it answers its peer, as data that this reads, is
// not limited. It is for QPs of all types that are ready to send: else ErrState. Congestion control, and what the port's classes leave
// it, may make the QP slower. Its data travel as packets, also to a peer on this host. A reset ends the limit. ErrInvalid: the other
// fields are set without a Rate. ErrUnsupported: an XRC target, or a driver before protocol version 2.20.
func (qp *QP) SetRateLimit(l RateLimit) error {
	h := qp.pd.dev.host
	return wrap("set rate limit", h.backend.LimitQP(h.ctx, command.LimitQP{
		QP: qp.handle, Rate: l.Rate, MaxBurst: l.MaxBurst, TypicalPacket: l.TypicalPacket,
	}))
}

// QPPath is the path that the data of a connection takes.
type QPPath uint32

// The paths.
const (
	PathWire   QPPath = iota + 1 // packets through the link
	PathLocal                    // copied from region to region by the adapters
	PathDirect                   // copied by the initiating program
)

// String returns the path as shown in status output.
func (p QPPath) String() string {
	switch p {
	case PathWire:
		return "wire"
	case PathLocal:
		return "local"
	case PathDirect:
		return "direct"
	}
	return "none"
}

// QPInfo is the configuration and current state of a QP.
type QPInfo struct {
	QPAttr
	Type       QPType
	Number     uint32
	Path       QPPath
	Draining   bool // SQD: requests are still outstanding
	SendPosted int
	RecvPosted int
}

// Query returns the QP's attributes and state.
func (qp *QP) Query() (QPInfo, error) {
	h := qp.pd.dev.host
	i, err := h.backend.QueryQP(h.ctx, qp.handle)
	if err != nil {
		return QPInfo{}, wrap("query qp", err)
	}
	return QPInfo{
		QPAttr: attrFrom(&i.Attr), Type: QPType(i.Type), Number: i.Number, Path: QPPath(i.Path),
		Draining: i.Draining != 0, SendPosted: int(i.SendPosted), RecvPosted: int(i.RecvPosted),
	}, nil
}
