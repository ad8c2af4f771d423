package cm

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestEventStatus: the status of an event tells an end that the peer confirmed or asked for from one that nobody
// answered.
func TestEventStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Event
		want uint32
	}{
		{"confirmed", Event{Type: EventDisconnected}, 0},
		{"ended by a REJ", Event{Type: EventDisconnected, Reason: mad.RejectStaleConnection}, 0},
		{"DREQ without an answer", Event{Type: EventDisconnected, Failure: FailureTimeout}, uint32(command.TimedOut)},
		{"REQ without an answer", Event{Type: EventUnreachable, Failure: FailureTimeout}, uint32(command.TimedOut)},
		{"refused", Event{Type: EventRejected, Reason: mad.RejectConsumer}, uint32(mad.RejectConsumer)},
	} {
		if got := c.e.status(); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

// TestModifyQP: each step of a QP sets what its type needs (IBA 11.2.5.2), and no other.
func TestModifyQP(t *testing.T) {
	a := Attributes{
		RemoteQPN: 18, RQPSN: 5, SQPSN: 6, MTU: ib.MTU1024, AckTimeout: 14, RetryCount: 3, RNRRetry: 7, InitiatorDepth: 2,
		ResponderResources: 4,
		FlowControl:        true, RemoteGID: netip.MustParseAddr("10.0.0.2"), SL: 9, TrafficClass: 8, HopLimit: 64, FlowLabel: 7,
		SrcPort: 0xc001,
	}
	const connected = command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN
	for _, c := range []struct {
		name string
		typ  command.QPType
		to   command.QPState
		lid  ib.LID
		mask command.QPMask
	}{
		{"RC to Init", command.RC, command.Init, 0, command.MaskState | command.MaskPKey | command.MaskAccess},
		{"UD to Init", command.UD, command.Init, 0, command.MaskState | command.MaskPKey | command.MaskQKey},
		{"RC to RTR", command.RC, command.RTR, 0, connected | command.MaskResponderResources | command.MaskMinRNRTimer},
		{"UC to RTR", command.UC, command.RTR, 0, connected},
		{"UC to RTR on InfiniBand", command.UC, command.RTR, 7, connected | command.MaskPKey},
		{"UD to RTR", command.UD, command.RTR, 7, command.MaskState},
		{"RC to RTS", command.RC, command.RTS, 0, command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry |
			command.MaskRNRRetry | command.MaskInitiatorDepth | command.MaskFlowControl},
		{"XRC initiator to RTR", command.XRCInitiator, command.RTR, 0, connected},
		{"XRC target to RTR", command.XRCTarget, command.RTR, 0, connected | command.MaskResponderResources | command.MaskMinRNRTimer},
		{"XRC initiator to RTS", command.XRCInitiator, command.RTS, 0, command.MaskState | command.MaskSQPSN | command.MaskTimeout |
			command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth},
		{"XRC target to RTS", command.XRCTarget, command.RTS, 0, command.MaskState | command.MaskSQPSN | command.MaskTimeout},
		{"UD to RTS", command.UD, command.RTS, 0, command.MaskState | command.MaskSQPSN},
	} {
		a.RemoteLID = c.lid
		m, ok := a.ModifyQP(c.typ, c.to)
		if !ok || m.State != c.to || m.Mask != c.mask {
			t.Errorf("%s: state %d, mask %#x, %v; want mask %#x", c.name, m.State, m.Mask, ok, c.mask)
		}
		if r := m.Route; m.Mask&command.MaskRoute != 0 {
			want := command.AddressVector{Addr: command.AddrFrom(a.RemoteGID), TrafficClass: 8, HopLimit: 64, FlowLabel: 7, SrcPort: 0xc001,
				SL: 1}
			if c.lid != 0 {
				want.LID, want.SL = 7, 9 // Ethernet has eight levels
			}
			if r != want || m.MTU != 1024 || m.DestQPN != 18 || m.RQPSN != 5 {
				t.Errorf("%s: wrong attributes or route %+v", c.name, m)
			}
		}
		if m.Mask&command.MaskFlowControl != 0 && (m.FlowControl != 1 || m.Timeout != 14 || m.Retry != 3 || m.RNRRetry != 7 ||
			m.InitiatorDepth != 2) {
			t.Errorf("%s: wrong timeouts, retries or depths %+v", c.name, m)
		}
	}
	if _, ok := a.ModifyQP(command.RC, command.SQD); ok {
		t.Error("SQD is on the way to RTS")
	}
}

// TestModifyQP_RNRTimer: a peer with a limit of retries is given the time that Linux gives it, so that it does not use
// them up while the program is held up for a moment; one without a limit may ask often. Each side knows what it allows
// its peer, the accepting one once it has answered.
func TestModifyQP_RNRTimer(t *testing.T) {
	for _, c := range []struct{ ofA, ofB, a, b uint8 }{{0, 6, 0, 0}, {6, 7, 0, 12}, {7, 1, 12, 0}, {7, 7, 12, 12}} {
		p := newPair(nil)
		l, err := p.b.e.Open(command.TCP, 0)
		check(t, err)
		_, err = p.b.e.Bind(l, netip.AddrPortFrom(p.b.addr, 7))
		check(t, err)
		check(t, p.b.e.Listen(l, 0))
		id, err := p.a.e.Open(command.TCP, 0)
		check(t, err)
		check(t, p.a.e.Connect(0, id, Connect{Remote: netip.AddrPortFrom(p.b.addr, 7), Local: p.a.addr, QPN: 0x100, RNRRetry: c.ofA}))
		p.flow()
		request := p.b.events()[0]
		if m, _ := request.Conn.ModifyQP(command.RC, command.RTR); m.MinRNRTimer != 0 {
			t.Errorf("before the answer: timer %d, want 0", m.MinRNRTimer)
		}
		b, err := p.b.e.Accept(0, request.ID, Accept{QPN: 0x200, RNRRetry: c.ofB})
		check(t, err)
		p.flow()
		a := p.a.events()[0].Conn
		for _, typ := range []command.QPType{command.RC, command.XRCTarget} {
			ma, _ := a.ModifyQP(typ, command.RTR)
			mb, _ := b.ModifyQP(typ, command.RTR)
			if ma.MinRNRTimer != c.a || mb.MinRNRTimer != c.b {
				t.Errorf("%v, %d and %d retries allowed: timers %d and %d, want %d and %d", typ, c.ofA, c.ofB, ma.MinRNRTimer, mb.MinRNRTimer,
					c.a, c.b)
			}
		}
	}
}

// TestCommandError: every error of the engine has the class that programs know.
func TestCommandError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want command.Code
	}{
		{&stateError{"Accept", "idle"}, command.State}, {ErrNoID, command.State}, {ErrPortInUse, command.InUse},
		{ErrNoPorts, command.Exhausted},
		{ErrTooManyIDs, command.Exhausted}, {fieldError("Timeout", -1, "positive"), command.Invalid},
		{command.Errorf(command.Busy, "as it is"), command.Busy}, {errors.New("unknown"), command.Internal},
	} {
		if got := CommandError(c.err); !errors.Is(got, &command.Error{Code: c.want}) {
			t.Errorf("%v became %v, want code %d", c.err, got, c.want)
		}
	}
	if err := CommandError(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}
