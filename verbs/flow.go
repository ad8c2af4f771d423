package verbs

import (
	"github.com/softvpi/softvpi/internal/command"
)

// FlowType is what a flow takes.
type FlowType = command.FlowType

// The types of flows.
const (
	FlowNormal           = command.FlowNormal           // frames that its rule matches
	FlowAllDefault       = command.FlowAllDefault       // frames that nothing else takes
	FlowMulticastDefault = command.FlowMulticastDefault // those of them that are to groups
	FlowSniffer          = command.FlowSniffer          // a copy of every frame that the port receives or sends
)

// FlowLayers are the protocols that frames must have for a rule.
type FlowLayers = command.FlowLayers

// The layers.
const (
	FlowEthernet = command.FlowEthernet
	FlowIPv4     = command.FlowIPv4
	FlowIPv6     = command.FlowIPv6
	FlowTCP      = command.FlowTCP
	FlowUDP      = command.FlowUDP
)

// FlowKey are the fields of a frame at which rules look.
type FlowKey = command.FlowKey

// FlowConfig describes a flow. A rule is for the bits of Value that are set in Mask, in frames with all of Layers; those of a
// flow of another type than FlowNormal are zero, as its Priority is.
type FlowConfig struct {
	Type        FlowType
	Priority    uint16 // smaller ones come first; those of one priority all take a frame that they match
	Layers      FlowLayers
	Value, Mask FlowKey
}

// Flow steers frames of the port to a raw packet QP, or to an RSS.
type Flow struct {
	host   *Host
	handle command.Handle
}

// CreateFlow makes a raw packet QP receive frames that arrive at the port: each takes a receive. RoCE for the adapter itself is
// for no rule but a sniffer's. A QP of type RawPacket, which sends and receives whole Ethernet frames without FCS, needs an
// adapter on a wire of whole frames, else CreateQP fails with ErrUnsupported, and a program of the driver's user or of root,
// else with ErrAccess. Its states need no attributes. Errors are ErrInvalid and ErrExhausted.
func (qp *QP) CreateFlow(c FlowConfig) (*Flow, error) { return qp.pd.dev.host.createFlow(qp.handle, c) }

func (h *Host) createFlow(to command.Handle, c FlowConfig) (*Flow, error) {
	handle, err := h.backend.CreateFlow(h.ctx, command.CreateFlow{
		QP: to, Type: c.Type, Priority: c.Priority, Layers: c.Layers, Value: c.Value, Mask: c.Mask,
	})
	if err != nil {
		return nil, wrap("create flow", err)
	}
	return &Flow{host: h, handle: handle}, nil
}

// FlowCounters count the frames of a flow: Frames and Bytes are those that its QP has got, Lost frames found no receive, or one
// that was too short.
type FlowCounters = command.FlowCounters

// Counters returns what the flow has counted so far.
func (f *Flow) Counters() (FlowCounters, error) {
	h := f.host
	c, err := h.backend.FlowCounters(h.ctx, f.handle)
	return c, wrap("flow counters", err)
}

// FramePort describes a port of whole Ethernet frames: its MAC, and the length of the longest frame in bytes, without FCS, at
// the MTU that the wire has now.
type FramePort = command.FramePort

// What a driver does for raw packet QPs, in FramePort.Offloads.
const (
	FrameChecksums  = command.FrameChecksums  // sends may have the flag Checksums, and completions have GoodChecksums
	FrameLargeSends = command.FrameLargeSends // there is OpLargeSend
	FrameRSS        = command.FrameRSS        // there is CreateRSS
	FrameFlags      = command.FrameFlags      // there are FrameOptions, SetFrameOptions, and BlockSelf
)

// FramePort returns what programs need to know for raw packet QPs. The errors are those of making one: ErrUnsupported on
// other wires, ErrAccess.
func (d *Device) FramePort() (FramePort, error) {
	p, err := d.host.backend.FramePort(d.host.ctx, d.index)
	return p, wrap("query port", err)
}

// Close ends the flow. A QP cannot be closed before its flows.
func (f *Flow) Close() error {
	h := f.host
	return h.destroyed("destroy flow", h.backend.Destroy(h.ctx, command.KindFlow, f.handle))
}
