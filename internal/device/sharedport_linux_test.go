package device

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
)

// threeEnds are two functions at one port, with MACs, addresses and P_Keys of their own, and a third party at the other
// end of its link.
func threeEnds(t testing.TB) (one, two, third *program) {
	t.Helper()
	return threeEndsWith(t, Config{Seed: 1})
}

// threeEndsWith are threeEnds with another host of the two functions.
func threeEndsWith(t testing.TB, cfgHost Config) (one, two, third *program) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	end := func(last byte) link.Station {
		return link.Station{MAC: [6]byte{2, 0, 0, 0, 9, last},
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 79, 0, last}), 24)}}
	}
	var l [2]link.Link
	for i, s := range []link.Station{end(1), end(3)} {
		l[i], err = datagram.Open(datagram.Config{Local: path[i], Remote: path[1-i], MTU: 4200, Stations: []link.Station{s},
			Patience: await.Limit}) // nothing sends raw frames again that a machine was too busy to take
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := func(s link.Station, l link.Link) AdapterConfig {
		return AdapterConfig{Addr: s.Prefixes[0].Addr(), MAC: s.MAC, Link: l, Path: PathWire}
	}
	h, far := newHost(t, cfgHost), newHost(t, Config{Seed: 2})
	first := h.add(t, cfg(end(1), l[0]))
	shares := cfg(end(2), nil)
	shares.ShareWith = &first
	one, two = newProgram(t, h, first), newProgram(t, h, h.add(t, shares))
	return one, two, newProgram(t, far, far.add(t, cfg(end(3), l[1])))
}

// exchange writes to each side from the other and sees the bytes arrive.
func exchange(t *testing.T, c *connected, n int) {
	t.Helper()
	for _, w := range [][2]*pair{{c.a, c.b}, {c.b, c.a}} {
		from, to := w[0].p.buffer(n), w[1].p.buffer(n)
		fill(from.b, uint64(n))
		wr := ring.SendWR{ID: 7, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
		wr.SGE[0] = from.sge(0, n)
		w[0].post(wr)
		wantSuccess(t, w[0].cq.next(), 7, ring.CQWrite)
		if string(from.b[:n]) != string(to.b[:n]) {
			t.Errorf("%d bytes arrive changed", n)
		}
	}
}

// strays returns how many packets an adapter's engine has received for queue pairs that it does not have.
func strays(p *program) uint64 {
	p.host.lock()
	defer p.host.unlock()
	return p.host.adapters[p.adapter].engine.Counters().UnknownQP
}

// only fails the test if another adapter has a queue pair of this one's number too: then its strays would not show.
func (q *pair) only(other *program) {
	other.host.lock()
	defer other.host.unlock()
	if other.host.adapters[other.adapter].byNumber[q.q.Number] != nil {
		q.p.t.Fatalf("both functions have a queue pair %#x: choose another seed", q.q.Number)
	}
}

// TestSharedPort: two functions on one port talk to each other and to a third party; neither gets the other's packets;
// either is disabled without harm to the other.
func TestSharedPort(t *testing.T) {
	one, two, third := threeEnds(t)
	for _, f := range [][2]*program{{one, two}, {two, one}} {
		q := f[0].idleQP()
		q.only(f[1])
		exchange(t, connect(q, third.idleQP()), 20000)
		if n := strays(f[1]); n > 0 {
			t.Errorf("the function at %v has received %d packets of that at %v", f[1].addr, n, f[0].addr)
		}
	}
	inside := connect(one.idleQP(), two.idleQP())
	exchange(t, inside, 20000)
	h := one.host
	h.lock()
	turned := h.adapters[0].port.Counters().Turned
	h.unlock()
	if turned == 0 {
		t.Error("packets between the functions were not turned around inside")
	}

	kept := connect(one.idleQP(), third.idleQP())
	one.check(h.SetAdapterState(two.adapter, false))
	exchange(t, kept, 3000)
	one.check(h.SetAdapterState(two.adapter, true))
	again := newProgram(t, h, two.adapter)
	kept = connect(again.idleQP(), third.idleQP())
	one.check(h.SetAdapterState(one.adapter, false))
	exchange(t, kept, 3000)
	one.check(h.SetAdapterState(one.adapter, true))
	exchange(t, connect(newProgram(t, h, one.adapter).idleQP(), again.idleQP()), 3000)
}

// TestSharedPort_PKeys: functions of one port have partitions of their own.
func TestSharedPort_PKeys(t *testing.T) {
	one, two, third := threeEnds(t)
	for i, p := range []*program{one, two, third} {
		p.host.lock()
		p.host.adapters[p.adapter].engine.SetPKeys([]ib.PKey{0x8001, 0x8002, 0x8001}[i : i+1])
		p.host.unlock()
	}
	joined := func(a, b *program) *connected {
		c := &connected{a: a.idleQP(), b: b.idleQP()}
		c.a.toReceive(c.b)
		c.b.toReceive(c.a)
		c.a.toSend()
		c.b.toSend()
		return c
	}
	exchange(t, joined(one, third), 100)
	c := joined(two, third)
	from := c.a.p.buffer(64)
	wr := ring.SendWR{ID: 1, Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1}
	wr.SGE[0] = from.sge(0, 64)
	c.a.post(wr)
	await.Eventually(t, "the third party counts a P_Key violation", func() bool {
		third.host.lock()
		defer third.host.unlock()
		return third.host.adapters[0].engine.Counters().PKeyViolations > 0
	})
}

// TestSharedPort_Refused: what cannot share a port is refused with the field that is wrong, and nothing is added.
func TestSharedPort_Refused(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	owner, second, none := uint32(0), uint32(1), uint32(9)
	good := AdapterConfig{Addr: netip.MustParseAddr("10.79.0.8"), MAC: [6]byte{2, 0, 0, 0, 9, 8}, ShareWith: &owner}
	for _, x := range []struct {
		name   string
		change func(*AdapterConfig)
		want   command.Code
	}{
		{"an adapter that does not exist", func(c *AdapterConfig) { c.ShareWith = &none }, command.NotFound},
		{"one that shares itself", func(c *AdapterConfig) { c.ShareWith = &second }, command.Invalid},
		{"no MAC", func(c *AdapterConfig) { c.MAC = [6]byte{} }, command.Invalid},
		{"another function's MAC", func(c *AdapterConfig) { c.MAC = [6]byte{2, 0, 0, 0, 9, 2} }, command.Invalid},
		{"another function's address", func(c *AdapterConfig) { c.Addr = one.addr }, command.InUse},
		{"a VLAN that is none", func(c *AdapterConfig) { c.VLAN = 4095 }, command.Invalid},
	} {
		cfg := good
		x.change(&cfg)
		if _, err := h.AddAdapter(cfg); !errors.Is(err, &command.Error{Code: x.want}) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if err := h.SetAdapterState(owner, false); err != nil {
		t.Fatal(err)
	}
	if err := h.ReplaceAdapter(owner, good); !errors.Is(err, &command.Error{Code: command.Busy}) {
		t.Errorf("replacing an adapter whose port others share: %v", err)
	}
	if n := len(h.adapters); n != 2 {
		t.Errorf("there are %d adapters, want 2", n)
	}
}

// TestSharedPort_Replaced: an adapter leaves the port that it shares for one of its own, and comes back, while another goes on there; then
// it may be replaced whose port that is.
func TestSharedPort_Replaced(t *testing.T) {
	one, _, third := threeEnds(t)
	h, owner, second := one.host, uint32(0), uint32(1)
	alone := func(last byte) AdapterConfig {
		s, err := vswitch.New(bridge.Config{})
		one.check(err)
		p, err := s.Open(vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1, MTU: 4200}, Notify: h.Wake})
		one.check(err)
		return AdapterConfig{Name: "port " + itoa(uint32(last)), Addr: netip.AddrFrom4([4]byte{10, 79, 0, last}),
			MAC: [6]byte{2, 0, 0, 0, 9, last}, Link: p, Path: PathWire}
	}
	before := connect(one.idleQP(), third.idleQP())
	one.check(h.SetAdapterState(second, false))
	one.check(h.ReplaceAdapter(second, alone(2)))
	one.check(h.SetAdapterState(second, true))
	ports := func(want int) {
		t.Helper()
		h.lock()
		defer h.unlock()
		if n := len(h.ports); n != want || len(h.adapters[owner].port.functions) != 3-want {
			t.Errorf("there are %d ports, and %d functions at the first, want %d ports", n, len(h.adapters[owner].port.functions), want)
		}
	}
	ports(2)
	exchange(t, before, 5000)
	one.check(h.SetAdapterState(second, false))
	back := alone(2)
	one.check(back.Link.Close())
	back.Link, back.ShareWith = nil, &owner
	one.check(h.ReplaceAdapter(second, back))
	one.check(h.SetAdapterState(second, true))
	ports(1)
	exchange(t, before, 5000)
	exchange(t, connect(newProgram(t, h, second).idleQP(), third.idleQP()), 5000)
	one.check(h.SetAdapterState(second, false))
	refused(t, "its own port again", h.ReplaceAdapter(second, back), command.Busy)
	one.check(h.ReplaceAdapter(second, alone(2)))
	one.check(h.SetAdapterState(owner, false))
	one.check(h.ReplaceAdapter(owner, alone(1)))
}

// TestSharedPort_CountedAndShown: each function of a port counts its own frames, those between functions as RDMA's alone, and a
// capture of either shows everything on the wire, those too, with right ICRCs.
func TestSharedPort_CountedAndShown(t *testing.T) {
	one, two, third := threeEnds(t)
	for _, p := range []*program{one, two} {
		exchange(t, connect(p.idleQP(), third.idleQP()), 100) // neighbours know each other now
	}
	h := one.host
	words := func(p *program) Counters { return h.Counters()[p.adapter] }
	rdma := func() (sent, received uint64) {
		a, b := words(one).RDMA, words(two).RDMA
		return a.SentFrames + b.SentFrames, a.ReceivedFrames + b.ReceivedFrames
	}
	// late are fewer frames than a message of 20000 bytes has: what was acknowledged late, and sent again, is answered whenever it comes.
	const late = 5
	before := [2]Counters{words(one), words(two)}
	taps := [2]*capture.Tap{}
	var was [2]uint64 // frames sent and received when the captures began
	await.Eventually(t, "captures begin while nothing comes", func() bool {
		was[0], was[1] = rdma()
		for i, p := range []*program{one, two} {
			if taps[i] != nil {
				p.check(h.StopCapture(p.adapter, taps[i]))
			}
			var err error
			if taps[i], err = capture.NewTap(0, 64<<20); err != nil {
				t.Fatal(err)
			}
			p.check(h.StartCapture(p.adapter, taps[i]))
		}
		sent, received := rdma()
		return sent == was[0] && received == was[1]
	})
	exchange(t, connect(two.idleQP(), third.idleQP()), 20000)
	first, second := words(one), words(two)
	// The links have frames of their own, too, which come when they come.
	if n := first.RDMA.SentFrames + first.RDMA.ReceivedFrames - before[0].RDMA.SentFrames - before[0].RDMA.ReceivedFrames; n > late {
		t.Errorf("the first function counts %d frames of the second", n)
	}
	sent, received := second.RDMA.SentFrames-before[1].RDMA.SentFrames, second.RDMA.ReceivedFrames-before[1].RDMA.ReceivedFrames
	if sent < 6 || received < 6 || second.RDMA.SentBytes-before[1].RDMA.SentBytes < 20000 ||
		second.RDMA.SentFrames >= second.Link.SentPackets || // it has asked for its neighbour
		second.RDMA.ReceivedBytes >= second.Link.ReceivedBytes {
		t.Errorf("of 20000 bytes each way the second counts %+v, its RDMA %+v", second.Link, second.RDMA)
	}
	var caught [2][2]uint64
	for i, tap := range taps {
		await.Eventually(t, "a capture shows the frames that are counted", func() bool {
			out, in := readCapture(t, tap)
			caught[i][0], caught[i][1] = caught[i][0]+out, caught[i][1]+in
			sent, received := rdma()
			return caught[i] == [2]uint64{sent - was[0], received - was[1]}
		})
	}
	before = [2]Counters{words(one), words(two)}
	outside := [2]uint64{caught[0][1], caught[1][1]} // those received so far
	exchange(t, connect(one.idleQP(), two.idleQP()), 20000)
	for i, p := range []*program{one, two} {
		c := words(p)
		if c.Link.SentPackets-before[i].Link.SentPackets > late || c.RDMA.ReceivedBytes-before[i].RDMA.ReceivedBytes < 20000 {
			t.Errorf("of frames inside the function counts %+v on the wire, and %+v of RDMA", c.Link, c.RDMA)
		}
	}
	for i, p := range []*program{one, two} {
		await.Eventually(t, "a capture shows the frames between functions, once", func() bool {
			out, in := readCapture(t, taps[i])
			caught[i][0], caught[i][1] = caught[i][0]+out, caught[i][1]+in
			sent, _ := rdma()
			return caught[i][0] == sent-was[0]
		})
		if in := caught[i][1] - outside[i]; in > late {
			t.Errorf("a capture shows %d of the frames between functions as received", in)
		}
		one.check(h.StopCapture(p.adapter, taps[i]))
	}
	_, _ = readCapture(t, taps[1]) // what came before the end
	exchange(t, connect(one.idleQP(), two.idleQP()), 20000)
	if out, in := readCapture(t, taps[1]); out+in != 0 {
		t.Errorf("an ended capture shows %d frames", out+in)
	}
}
