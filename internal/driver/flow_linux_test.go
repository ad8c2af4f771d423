package driver

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

func init() {
	for _, name := range []string{"*FlowControl", "RxPause", "TxPause", "PerPriRxPause", "PerPriTxPause"} {
		acting[name] = TestFlowControlKeys
	}
	acting["DelayDropTimeout"] = TestDroplessMode
	acting["DeviceRxStallTimeout"], acting["DeviceRxStallWatermark"] = TestReceiveStall, TestReceiveStall
	for _, name := range []string{"TCHeadOfQueueLifeTimeLimitEnable", "TCHeadOfQueueLifeTimeLimit", "TCStallCount"} {
		acting[name] = TestHeadOfQueueLifetime
	}
}

// pausing is an adapter with a guest, at whose wire the test is the other end.
type pausing struct {
	*Driver
	guest *guest
	wire  *guest
}

func newPausing(t *testing.T, generation string, keys map[string]string) *pausing {
	t.Helper()
	cfg := overSockets(t)[0]
	a := &cfg.Adapters[0]
	a.Generation = generation
	p := &pausing{guest: withGuest(t, &cfg, "02:00:00:00:00:01"), wire: &guest{path: a.Wire.Datagram, mac: eth.MAC{2, 0, 0, 0, 0, 2}}}
	var err error
	if p.wire.UnixConn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: a.Wire.Peer, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.wire.Close() })
	p.Driver = start(t, cfg)
	t.Cleanup(func() { stop(t, p.Driver) })
	set(t, p.Driver, "port", "*ReceiveBuffers", "256") // the shortest ring is full first
	p.set(t, keys)
	return p
}

// set sets keys, and lets them take effect.
func (p *pausing) set(t *testing.T, keys map[string]string) {
	t.Helper()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(keys))) { // one that others exclude first
		set(t, p.Driver, "port", name, keys[name])
	}
	restart(t, p.Driver, "port")
}

func (p *pausing) flow() *api.FlowControlStatus { return p.Overview().Adapters[0].FlowControl }
func (p *pausing) counted() device.FlowCounters { return p.host.Counters()[0].Flow }
func (p *pausing) at(priority uint16, n int) []byte {
	return tagged(long(p.wire.frame(p.guest.mac, "x"), n), priority<<13)
}

// asked sends frames of two priorities to the guest, which reads none, until the adapter asks for a pause, and returns that; nil: it
// asks for none although frames are lost.
func (p *pausing) asked(t *testing.T) (got *eth.Pause) {
	t.Helper()
	lost := func() uint64 { return p.Status().Adapters[0].Ethernet.Counters["dropped_buffer_frames"] }
	b, before := make([]byte, 70000), lost()
	read := func() bool {
		for {
			_ = p.wire.SetReadDeadline(time.Now().Add(time.Millisecond))
			n, err := p.wire.Read(b)
			if err != nil {
				return got != nil
			}
			if f, err := eth.ParsePause(b[:n]); err == nil && f.Quanta != [8]uint16{} {
				got = &f
			}
		}
	}
	await.Eventually(t, "the guest's ring is full", func() bool {
		for range 64 {
			for _, priority := range []uint16{3, 5} {
				p.wire.send(t, p.at(priority, 100))
			}
		}
		return read() || lost() > before
	})
	sent := p.counted().Global.Sent
	for _, c := range p.counted().Priority {
		sent += c.Sent
	}
	if sent > 0 { // it is on its way
		await.Eventually(t, "the pause comes", read)
	}
	return got
}

// TestFlowControlKeys: which pauses an adapter obeys, and for which it asks its peer when the host takes nothing of its receive ring, by
// the keys of its generation, and by the priorities that are to be paused on their own, which come first (WinOF-2 1.21, 3.4.5.1; WinOF
// 5.50, 4.6.6.1).
func TestFlowControlKeys(t *testing.T) {
	t.Parallel()
	const global, three = "global pause", "PFC 3"
	for _, c := range []struct {
		generation  string
		keys        map[string]string
		pfc         string
		obeys, asks string
	}{
		{"mlx5", nil, "", "none", "none"},
		{"mlx5", map[string]string{"*FlowControl": "1"}, "", global, "none"},
		{"mlx5", map[string]string{"*FlowControl": "2"}, "", "none", global},
		{"mlx5", map[string]string{"*FlowControl": "3"}, "", global, global},
		{"mlx5", map[string]string{"*FlowControl": "3"}, "pfc=3", three, three},
		{"mlx4", nil, "", global, global},
		{"mlx4", map[string]string{"RxPause": "0", "TxPause": "0"}, "", "none", "none"},
		{"mlx4", map[string]string{"TxPause": "0", "PerPriTxPause": "8"}, "", three, global},
		{"mlx4", map[string]string{"RxPause": "0", "PerPriRxPause": "8"}, "", global, three},
	} {
		name := c.generation + " " + c.obeys + " " + c.asks
		t.Run(name, func(t *testing.T) {
			p := newPausing(t, c.generation, c.keys)
			if c.pfc != "" {
				if err := p.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{c.pfc}}); err != nil {
					t.Fatal(err)
				}
			}
			if f := p.flow(); f.Obeys != c.obeys || f.Asks != c.asks || f.Refused != "" || f.Deaf != "" {
				t.Errorf("%+v", f)
			}
			before := p.counted()
			p.wire.send(t, (&eth.Pause{PerPriority: true, Enabled: 8, Quanta: [8]uint16{3: 1}}).Append(nil))
			p.wire.send(t, (&eth.Pause{Quanta: [8]uint16{1}}).Append(nil))
			await.Eventually(t, "the pauses have come", func() bool { return p.counted().Control == before.Control+2 })
			now := p.counted()
			now.Global.Received -= before.Global.Received
			now.Priority[3].Received -= before.Priority[3].Received
			if (now.Global.Received == 1) != (c.obeys == global) || (now.Priority[3].Received == 1) != (c.obeys == three) {
				t.Errorf("obeyed %+v", now)
			}
			got := p.asked(t)
			switch {
			case c.asks == "none" && got != nil, c.asks != "none" && got == nil:
				t.Errorf("it asks %+v", got)
			case c.asks == global && got.PerPriority, c.asks == three && (!got.PerPriority || got.Enabled != 8 || got.Quanta[3] != 0xffff):
				t.Errorf("it asks %+v", got)
			}
			if c := p.counted(); got != nil && got.Src != p.guest.mac || (c.Global.Sent > 0 || c.Priority[3].Sent > 0) != (got != nil) {
				t.Errorf("%+v, counted %+v", got, c)
			}
		})
	}
}

// TestFlowControl_RefusedByName: UDP sockets carry no pauses: whoever switches them on, or dropless mode, is told so.
func TestFlowControl_RefusedByName(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	set(t, d, "left", "*FlowControl", "3")
	restart(t, d, "left")
	wantEvent(t, d, "FlowControlRefused", "left", "UDP sockets, which carry no pause frames")
	if f := d.Overview().Adapters[0].FlowControl; !f.Asked || !strings.Contains(f.Refused, "UDP sockets") {
		t.Errorf("%+v", f)
	}
	if f := d.Overview().Adapters[1].FlowControl; f.Asked || f.Refused == "" {
		t.Errorf("nobody has asked: %+v", f)
	}
	err := d.SetOID(api.OIDRequest{Adapter: "left", OID: "0xFFA0C932", Buffer: "a21e0c0001"})
	if !errors.Is(err, api.ErrUnsupported) || !strings.Contains(err.Error(), "UDP sockets") {
		t.Error(err)
	}
	if _, err := d.QueryOID("left", "0xFFA0C932"); !errors.Is(err, api.ErrUnsupported) {
		t.Error(err)
	}
}

// TestDroplessMode: dropless mode is entered by DelayDropTimeout of WinOF-2 and by the OID, and left by it and by a packet that waits
// too long; each is an event. With WinOF's key the mode is only allowed (WinOF-2 Ethernet, Dropless Mode; WinOF 5.50, 4.1.12).
func TestDroplessMode(t *testing.T) {
	t.Parallel()
	const oid = "0xFFA0C932"
	for _, c := range []struct {
		generation           string
		keys                 map[string]string
		begins, later        string // for how long, at first and when entered by the OID
		enter, leave, on, no string
	}{
		{"mlx5", nil, "", "5ms", "a21e0c0001", "a21e0c0002000000", "a21e0c0001", "a21e0c0000"},
		{"mlx5", map[string]string{"DelayDropTimeout": "100"}, "10ms", "10ms", "a21e0c0001", "a21e0c0002", "a21e0c0001", "a21e0c0000"},
		{"mlx5", map[string]string{"DelayDropTimeout": "0"}, "", "5ms", "a21e0c0001", "a21e0c0002", "a21e0c0001", "a21e0c0000"},
		{"mlx4", map[string]string{"DelayDropTimeout": "3"}, "", "300µs", "01", "00", "01", "00"},
		{"mlx4", map[string]string{"DelayDropTimeout": "65535"}, "", "without end", "01", "00", "01", "00"},
	} {
		t.Run(c.generation+c.later, func(t *testing.T) {
			p := newPausing(t, c.generation, c.keys)
			is := func(want string) {
				t.Helper()
				answer, err := p.QueryOID("port", oid)
				buffer := map[bool]string{true: c.on, false: c.no}[want != ""]
				if p.flow().Dropless != want || err != nil || answer.Buffer != buffer {
					t.Errorf("dropless mode %q, answer %+v, %v; want %q", p.flow().Dropless, answer, err, want)
				}
			}
			put := func(buffer string) {
				t.Helper()
				if err := p.SetOID(api.OIDRequest{Adapter: "port", OID: oid, Buffer: buffer}); err != nil {
					t.Fatal(err)
				}
			}
			is(c.begins)
			put(c.enter)
			is(c.later)
			wantEvent(t, p.Driver, "DroplessEntered")
			put(c.leave)
			is("")
			wantEvent(t, p.Driver, "DroplessExited")
			for _, wrong := range []string{"", "02", "0001", "a21e0c0003", "a21e0c0103", "b21e0c0001", "x"} {
				var field *api.FieldError
				if err := p.SetOID(api.OIDRequest{Adapter: "port", OID: oid, Buffer: wrong}); !errors.As(err, &field) {
					t.Errorf("%q: %v", wrong, err)
				}
			}
			put(c.enter)
			if c.later == "without end" {
				return
			}
			await.Eventually(t, "the mode ends", func() bool { // when the guest's ring is full
				for range 64 {
					p.wire.send(t, p.at(0, 100))
				}
				return p.flow().Dropless == ""
			})
			await.Eventually(t, "its event", func() bool { return strings.Contains(strings.Join(raised(t, p.Driver), "\n"), "DelayDropTimeout: ") })
		})
	}
	p := newPausing(t, "mlx4", nil)
	if err := p.SetOID(api.OIDRequest{Adapter: "port", OID: oid, Buffer: "01"}); !errors.Is(err, api.ErrUnsupported) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := p.QueryOID("port", "0x1"); err == nil {
		t.Error("an unknown OID is answered")
	}
}

// TestReceiveStall: a host that takes nothing for longer than the watermark is counted, and after the time-out flow control is off for all
// priorities, so that the peer may go on, until the host takes something again (WinOF-2 Ethernet, Receive Path Activity Monitoring).
func TestReceiveStall(t *testing.T) {
	t.Parallel()
	p := newPausing(t, "mlx5", map[string]string{"DeviceRxStallWatermark": "300", "DeviceRxStallTimeout": "2000"})
	if err := p.SetQoS(api.QoSRequest{Adapter: "port", Settings: []string{"pfc=3,5"}}); err != nil {
		t.Fatal(err)
	}
	var before device.FlowCounters
	await.Eventually(t, "it asks for a pause", func() bool {
		before = p.counted()
		got := p.asked(t)
		if got == nil && p.counted().Critical > before.Critical { // the first frames had waited for two seconds when the ring was half full
			restart(t, p.Driver, "port")
			return false
		}
		if got == nil || got.Enabled&^(1<<3|1<<5) != 0 {
			t.Fatalf("it asks %+v", got)
		}
		return true
	})
	await.Eventually(t, "the stall is counted", func() bool { return p.counted().Critical == before.Critical+1 })
	if f, c := p.flow(), p.counted(); f.Stalled == "" || f.Obeys != "none" || f.Asks != "none" || c.Minor != before.Minor+1 {
		t.Errorf("%+v, %+v", f, c)
	}
	await.Eventually(t, "the peer may go on", func() bool { return p.flow().Pausing == "none" })
	b := make([]byte, 70000)
	await.Eventually(t, "flow control is back", func() bool {
		_ = p.guest.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = p.guest.Read(b)
		return p.flow().Stalled == ""
	})
	if f := p.flow(); f.Asks != "PFC 3,5" {
		t.Errorf("%+v", f)
	}
}

// TestHeadOfQueueLifetime: packets of a class with a limit are lost when they have been at the head of their queue for too long, all of
// them after several in a row, and those of other classes wait (WinOF-2 Ethernet, Head of Queue Lifetime Limit).
func TestHeadOfQueueLifetime(t *testing.T) {
	p := newPausing(t, "mlx5", map[string]string{"TCHeadOfQueueLifeTimeLimitEnable": "2", "TCHeadOfQueueLifeTimeLimit": "8", "TCStallCount": "3"})
	if err := p.SetQoS(api.QoSRequest{Adapter: "port", Settings: strings.Fields("pfc=3,5 prio-tc=3:1 tc-bw=0:50,1:50")}); err != nil {
		t.Fatal(err)
	}
	if l := p.host.Overview().Adapters[0].Flow; l.Refused != nil {
		t.Fatal(l.Refused)
	}
	lost := func() device.FlowCounters { return p.counted() }
	await.Eventually(t, "packets of class 1 are lost", func() bool {
		p.wire.send(t, (&eth.Pause{PerPriority: true, Enabled: 1<<3 | 1<<5, Quanta: [8]uint16{3: 0xffff, 5: 0xffff}}).Append(nil))
		for range 16 {
			p.guest.send(t, tagged(p.guest.frame(p.wire.mac, "x"), 3<<13))
			p.guest.send(t, tagged(p.guest.frame(p.wire.mac, "y"), 5<<13))
		}
		return lost().Discards[3] > 16
	})
	if c := lost(); c.Discards[5] != 0 || c.Discards[0] != 0 {
		t.Errorf("lost %v", c.Discards)
	}
	set(t, p.Driver, "port", "TCHeadOfQueueLifeTimeLimit", "20") // for ever
	restart(t, p.Driver, "port")
	before := lost()
	// A pause lasts 3.4 ms at most, and is over before the packets come where the processors are busy.
	await.Eventually(t, "packets wait", func() bool {
		p.wire.drain(t) // those of the other class and those that a pause was too short for, which may fill the socket
		p.wire.send(t, (&eth.Pause{PerPriority: true, Enabled: 1 << 3, Quanta: [8]uint16{3: 0xffff}}).Append(nil))
		for _, payload := range []string{"first", "second"} {
			p.guest.send(t, tagged(p.guest.frame(p.wire.mac, payload), 3<<13))
		}
		return p.host.Ethernet(0).Sending >= 2
	})
	for _, payload := range []string{"first", "second"} {
		p.wire.gets(t, payload, func() { p.wire.send(t, (&eth.Pause{PerPriority: true, Enabled: 1 << 3}).Append(nil)) })
	}
	if c := lost(); c.Discards != before.Discards {
		t.Errorf("lost %v, before %v", c.Discards, before.Discards)
	}
}
