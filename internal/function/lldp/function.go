// Package lldp puts the LLDP agent of a port (package dcb) behind the port, as a function of its own. It is pure.
package lldp

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	wire "github.com/softvpi/softvpi/wire/lldp"
)

// priority is that of network control, at which data units leave (IEEE 802.1Q, table I-2).
const priority = 7

// headAt is where in an Out's Head a frame begins, and inHead how much of it is there.
const (
	headAt = 64
	inHead = 60
)

// Agreement is by what a port is to work, and with whom that was agreed.
type Agreement struct {
	qos.Operative
	dcb.DCBXStatus
}

// Function is an agent at a port. It implements port.Taker.
type Function struct {
	*dcb.Agent
	route   frame.Route
	due     clock.Time // the agent's deadline, which a port asks for in every turn
	changed func(Agreement)
	before  Agreement
}

// New returns the function of an agent. changed is called whenever the settings are others, or the peer, or where DCBX stands; and
// once at first.
func New(a *dcb.Agent, changed func(Agreement)) *Function {
	f := &Function{Agent: a, due: a.Deadline(), changed: changed, before: Agreement{a.Operative(), a.DCBX()}}
	changed(f.before)
	return f
}

// Takes implements port.Taker: data units of the other end of the wire, while the agent receives.
func (f *Function) Takes(head []byte) bool {
	t := eth.EtherType(head[12])<<8 | eth.EtherType(head[13])
	return eth.MAC(head) == wire.NearestBridge && t == wire.EtherType && f.Receives()
}

// Receive implements port.Function.
func (f *Function) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		f.Agent.Receive(now, in[i].Data)
	}
	f.tell()
}

// Transmit implements port.Function.
func (f *Function) Transmit(now clock.Time, at uint8, out []frame.Out) int {
	if at != priority || len(out) == 0 {
		return 0
	}
	b := f.Agent.Transmit(now)
	f.due = f.Agent.Deadline()
	if b == nil {
		return 0
	}
	o := &out[0]
	o.Reset(&f.route)
	o.HeadStart, o.HeadEnd = headAt, headAt+uint16(copy(o.Head[headAt:headAt+inHead], b))
	o.Payload = b[min(inHead, len(b)):]
	return 1
}

// Pending implements port.Function.
func (f *Function) Pending() uint8 {
	if f.Agent.Pending() {
		return 1 << priority
	}
	return 0
}

// Deadline implements port.Function.
func (f *Function) Deadline() clock.Time { return f.due }

// Advance implements port.Function.
func (f *Function) Advance(now clock.Time) {
	if now >= f.due {
		f.Agent.Advance(now)
		f.tell()
	}
}

// tell notes when the agent wants to be driven next, and tells of what has changed.
func (f *Function) tell() {
	f.due = f.Agent.Deadline()
	now, was := Agreement{f.Operative(), f.DCBX()}, &f.before
	if now.Equal(&was.Operative) && now.State == was.State && now.Protocol == was.Protocol && now.DCBXStatus.Peer == was.DCBXStatus.Peer {
		return
	}
	f.before = now
	f.changed(now)
}

// Follow does to the agent what is not a function's part (it starts, stops, is configured), and tells of what has changed by it.
func (f *Function) Follow(do func(*dcb.Agent)) {
	do(f.Agent)
	f.tell()
}
