package device

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// vf adds a virtual function at the port of adapter 0 of a host, and a program that has it.
func vf(t testing.TB, h *Host, last byte, change func(*FunctionConfig)) (index uint32, p *program) {
	t.Helper()
	f := FunctionConfig{Name: "vf" + itoa(uint32(last)), MAC: [6]byte{2, 0, 0, 0, 9, last},
		Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 79, 0, last}), 24)}
	if change != nil {
		change(&f)
	}
	index, err := h.AddFunction(f)
	if err != nil {
		t.Fatal(err)
	}
	return index, newProgramWith(t, h, 0, ClientConfig{Name: f.Name, PID: 1, Function: &index})
}

// status returns that of a virtual function of adapter 0.
func status(t testing.TB, h *Host, name string) FunctionStatus {
	t.Helper()
	for _, f := range h.Functions(0) {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no virtual function %q", name)
	return FunctionStatus{}
}

// refused fails unless an error has a code.
func refused(t testing.TB, what string, err error, code command.Code) {
	t.Helper()
	if !errors.Is(err, &command.Error{Code: code}) {
		t.Errorf("%s: %v, want code %v", what, err, code)
	}
}

// TestVirtual: virtual functions reach each other, the adapter whose port they are at, and the outside, on whatever path; each
// counts its own frames.
func TestVirtual(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	_, a := vf(t, h, 10, nil)
	_, b := vf(t, h, 11, nil)
	for _, x := range [][2]*program{{a, b}, {b, a}, {a, one}, {one, b}, {a, third}, {third, b}} {
		exchange(t, connect(x[0].idleQP(), x[1].idleQP()), 20000)
	}
	for _, name := range []string{"vf10", "vf11"} {
		f := status(t, h, name)
		if f.Frames.Wire.SentBytes < 20000 || f.Frames.Inside.SentBytes < 20000 || f.Programs != 1 || !f.Up {
			t.Errorf("%s counts %+v with %d programs, up: %v", name, f.Frames, f.Programs, f.Up)
		}
	}
}

// TestVirtual_Sees: a program with a virtual function sees that alone, and one without sees none; neither can name the other's.
func TestVirtual_Sees(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	index, a := vf(t, h, 10, nil)
	_, b := vf(t, h, 11, nil)
	infos, err := a.c.Adapters(bg)
	a.check(err)
	if len(infos) != 1 || infos[0].Index != 0 || infos[0].Addr.IP() != netip.MustParseAddr("10.79.0.10") {
		t.Errorf("the program of a virtual function sees %+v", infos)
	}
	infos, err = one.c.Adapters(bg)
	one.check(err)
	if len(infos) != 2 {
		t.Errorf("a program without one sees %d adapters, want 2", len(infos))
	}
	for i := uint32(1); i < 6; i++ {
		_, err := a.c.AllocPD(bg, i)
		refused(t, "a domain of another function", err, command.NotFound)
		_, err = a.c.GIDs(bg, i)
		refused(t, "GIDs of another function", err, command.NotFound)
		_, err = a.c.Counters(bg, i)
		refused(t, "counters of another function", err, command.NotFound)
		_, err = a.c.Port(bg, i)
		refused(t, "the port of another function", err, command.NotFound)
		_, err = a.c.CMCreate(bg, command.CMCreate{Adapter: i, Space: command.TCP})
		refused(t, "an id of another function", err, command.NotFound)
		_, err = a.c.CreateChannel(bg, command.CreateChannel{Adapter: i, Kind: command.Asynchronous}, nil)
		refused(t, "events of another function", err, command.NotFound)
	}
	_, err = one.c.AllocPD(bg, index)
	refused(t, "a domain of a virtual function", err, command.NotFound)
	for _, at := range []string{"10.79.0.1", "10.79.0.11"} {
		id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
		a.check(err)
		_, err = a.c.CMBind(bg, id, command.Endpoint{Addr: command.AddrFrom(netip.MustParseAddr(at))})
		refused(t, "binding to "+at, err, command.AddrNotAvailable)
	}
	// A listener at any address hears what is for its own function alone.
	id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	a.check(err)
	_, err = a.c.CMBind(bg, id, command.Endpoint{Addr: command.AddrFrom(netip.IPv6Unspecified()), Port: 4000})
	a.check(err)
	a.check(a.c.CMListen(bg, id, 0))
	other, err := b.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	b.check(err)
	_, err = b.c.CMBind(bg, other, command.Endpoint{Addr: command.AddrFrom(netip.IPv6Unspecified()), Port: 4000})
	b.check(err) // it is another function's port
}

// TestVirtual_VLAN: functions in one VLAN reach each other, and those in different ones do not: neither through the connection
// manager nor by queue pairs that were connected by hand, on no path.
func TestVirtual_VLAN(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	in := func(vlan uint16) func(*FunctionConfig) { return func(f *FunctionConfig) { f.VLAN = vlan } }
	_, a := vf(t, h, 10, in(100))
	_, b := vf(t, h, 11, in(100))
	_, c := vf(t, h, 12, in(200))
	exchange(t, connect(a.idleQP(), b.idleQP()), 20000)
	for _, other := range []*program{c, one} {
		x := &connected{a: a.idleQP(), b: other.idleQP()}
		x.a.toReceive(x.b)
		x.b.toReceive(x.a)
		x.a.toSend()
		x.b.toSend()
		h.lock()
		for _, q := range []*pair{x.a, x.b} {
			if p := h.peerOf(q.p.c.qps.Get(q.q.Handle)); p != nil {
				t.Error("queue pairs in different VLANs are peers")
			}
		}
		h.unlock()
	}
	exchange(t, connect(a.idleQP(), b.idleQP()), 5000)
}

// TestVirtual_Changes: functions are added, changed and removed while data is checked on the connections of others; a program whose
// function goes is told, and can do nothing more; the function after it is another's.
func TestVirtual_Changes(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	_, a := vf(t, h, 10, nil)
	outside, inside := connect(a.idleQP(), third.idleQP()), connect(a.idleQP(), one.idleQP())
	for i := range 3 {
		index, b := vf(t, h, 20, nil)
		kept := connect(b.idleQP(), a.idleQP())
		exchange(t, kept, 5000)
		exchange(t, outside, 5000)
		one.check(h.SetFunction(index, Virtual{Share: port.Share{Most: 100e6, Least: 1e6}, Link: LinkUp, Trust: true}))
		exchange(t, kept, 5000)
		one.check(h.RemoveFunction(index))
		b.event(command.EventDeviceFatal)
		_, err := b.c.AllocPD(bg, 0)
		refused(t, "a domain of a function that is gone", err, command.Removed)
		if infos, err := b.c.Adapters(bg); err != nil || len(infos) != 0 {
			t.Errorf("round %d: the program of a function that is gone sees %d adapters, %v", i, len(infos), err)
		}
		exchange(t, outside, 5000)
		exchange(t, inside, 5000)
	}
	refused(t, "removing an adapter", h.RemoveFunction(0), command.NotFound)
	if n := len(h.Functions(0)); n != 1 {
		t.Errorf("%d virtual functions are left, want 1", n)
	}
}

// TestVirtual_Link: a function whose link an administrator takes down carries nothing, also within the port, and goes on when it is
// back; those of others stay.
func TestVirtual_Link(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	index, a := vf(t, h, 10, nil)
	_, b := vf(t, h, 11, nil)
	one.check(h.SetFunction(index, Virtual{Link: LinkDown}))
	a.event(command.EventPortDown)
	if i, err := a.c.Port(bg, 0); err != nil || i.State != 1 {
		t.Errorf("the port is in state %d, %v; want 1 (down)", i.State, err)
	}
	exchange(t, connect(b.idleQP(), one.idleQP()), 1000)
	id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	a.check(err)
	_, err = a.c.CMConnect(bg, command.CMConnect{ID: id, QP: a.idleQP().q.Handle, Param: usualParam,
		Remote: command.Endpoint{Addr: command.AddrFrom(b.addr), Port: 1}})
	refused(t, "connecting from a port that is down", err, command.NetworkUnreachable)
	one.check(h.SetFunction(index, Virtual{}))
	a.event(command.EventPortActive)
	exchange(t, connect(a.idleQP(), b.idleQP()), 1000)
}

// TestVirtual_Raw: raw packet queue pairs take trust; frames with another's MAC, and RoCE with another's GID, are dropped and
// counted; frames for others cannot be asked for.
func TestVirtual_Raw(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	told := make(chan Spoofed, 8)
	h.lock() // before anything is sent: the loop tells of it when it tends the switch next
	h.cfg.Spoofed = func(s Spoofed) { told <- s }
	h.unlock()
	index, a := vf(t, h, 10, nil)
	_, err := a.c.CreateQP(bg, command.CreateQP{Type: command.RawPacket, PD: a.pd, SendCQ: a.cq(64).q.Handle, RecvCQ: a.cq(64).q.Handle,
		SendDepth: 4, RecvDepth: 4, SendSGE: 1, RecvSGE: 1})
	refused(t, "a raw packet queue pair without trust", err, command.Access)
	one.check(h.SetFunction(index, Virtual{Trust: true}))
	tx, rx := a.rawEnd(), third.rawEnd()
	for _, r := range []command.CreateFlow{{Type: command.FlowSniffer}, {Type: command.FlowAllDefault}, toMAC([6]byte{2, 0, 0, 0, 9, 1}, 0),
		{Layers: command.FlowEthernet}} {
		r.QP = tx.q.Handle
		_, err := a.c.CreateFlow(bg, r)
		refused(t, "a flow for others' frames", err, command.Access)
	}
	tx.flow(toMAC([6]byte{2, 0, 0, 0, 9, 10}, 0))
	to, own, other := [6]byte{2, 0, 0, 0, 9, 3}, [6]byte{2, 0, 0, 0, 9, 10}, [6]byte{2, 0, 0, 0, 9, 1}
	rx.flow(toMAC(to, 0))
	rx.receive(4)
	tx.sends(udpFrame(to, other, 5678, 100))
	tx.sends(udpFrame(to, own, 4791, 100)) // from 10.0.0.1
	good := udpFrame(to, own, 5678, 120)
	tx.sends(good)
	rx.gets("what is its own", good)
	if f := status(t, h, "vf10"); f.Switch.Dropped[eswitch.SourceMAC] != 1 || f.Forged != 1 {
		t.Errorf("%d frames were dropped and %d forged, want 1 and 1", f.Switch.Dropped[eswitch.SourceMAC], f.Forged)
	}
	tx.sends(etherTyped(to, own, 0x88cc))
	tx.sends(good)
	rx.gets("behind another type", good)
	for _, want := range []eswitch.Reason{eswitch.SourceMAC, eswitch.EtherType} {
		var s Spoofed
		await.Eventually(t, "the administrator is told", func() bool {
			h.lock()
			h.adapters[0].port.embedded.due = 0
			h.adapters[0].port.tendSwitch(h.now())
			h.unlock()
			select {
			case s = <-told:
				return true
			default:
				return false
			}
		})
		if s.Function != "vf10" || s.Number != 0 || s.Owner != 0 || s.Reason != want || s.Frames != 1 {
			t.Errorf("the administrator is told of %+v", s)
		}
	}
}

// etherTyped returns a frame of an EtherType.
func etherTyped(dst, src [6]byte, typ uint16) []byte {
	b := append(append(dst[:], src[:]...), byte(typ>>8), byte(typ))
	return append(b, make([]byte, 50)...)
}

// TestVirtual_Groups: a function gets what is for the groups that it joined, and nothing after it has left them.
func TestVirtual_Groups(t *testing.T) {
	one, _, _ := threeEnds(t)
	_, a := vf(t, one.host, 10, nil)
	q := a.qp(command.CreateQP{Type: command.UD}, a.cq(16)).q.Handle
	group := command.AddrFrom(netip.MustParseAddr("239.1.2.3"))
	in := func() bool {
		h := one.host
		h.lock()
		defer h.unlock()
		var r eswitch.Recent
		f := etherTyped([6]byte{1, 0, 0x5e, 1, 2, 3}, [6]byte{2, 9, 9, 9, 9, 9}, 0x800)
		if h.adapters[0].port.embedded.Follow(eswitch.Wire, f, len(f), &r) != 0 {
			return false
		}
		return r.To.Has(eswitch.VF(0))
	}
	a.check(a.c.AttachMulticast(bg, q, group))
	if !in() {
		t.Error("it does not get what is for its group")
	}
	a.check(a.c.DetachMulticast(bg, q, group))
	if in() {
		t.Error("it still gets what is for the group")
	}
}

// TestVirtual_Most: a function with a most sends by packets, also to others of the port, and no faster.
func TestVirtual_Most(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	index, a := vf(t, h, 10, nil)
	_, b := vf(t, h, 11, nil)
	const most = 8e6
	one.check(h.SetFunction(index, Virtual{Share: port.Share{Most: most}}))
	c := connect(a.idleQP(), b.idleQP())
	from, to := a.buffer(1<<20), b.buffer(1<<20)
	fill(from.b, 3)
	began := h.now()
	const rounds = 4
	for i := range uint64(rounds) {
		wr := ring.SendWR{ID: i, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
		wr.SGE[0] = from.sge(0, 1<<20)
		c.a.post(wr)
		wantSuccess(t, c.a.cq.next(), i, ring.CQWrite)
	}
	took := h.now().Sub(began)
	if least := float64(rounds<<20-1<<20) / most; took.Seconds() < least {
		t.Errorf("%d bytes took %v, want at least %.2f s", rounds<<20, took, least)
	}
	if string(from.b) != string(to.b) {
		t.Error("the bytes arrive changed")
	}
	await.Eventually(t, "its frames are counted", func() bool { return status(t, h, "vf10").Frames.Inside.SentBytes > rounds<<20 })
}

// TestVirtual_Refused: what cannot be a virtual function is refused with the field that is wrong.
func TestVirtual_Refused(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	index, _ := vf(t, h, 10, nil)
	good := FunctionConfig{Name: "x", MAC: [6]byte{2, 0, 0, 0, 9, 30}, Addr: netip.MustParsePrefix("10.79.0.30/24")}
	for _, x := range []struct {
		name   string
		change func(*FunctionConfig)
		want   command.Code
	}{
		{"no adapter", func(f *FunctionConfig) { f.Owner = 77 }, command.NotFound},
		{"of a virtual function", func(f *FunctionConfig) { f.Owner = index }, command.Invalid},
		{"a group's MAC", func(f *FunctionConfig) { f.MAC[0] = 1 }, command.Invalid},
		{"another's MAC", func(f *FunctionConfig) { f.MAC[5] = 10 }, command.Invalid},
		{"another's name", func(f *FunctionConfig) { f.Name = "vf10" }, command.InUse},
		{"another's address", func(f *FunctionConfig) { f.Addr = netip.MustParsePrefix("10.79.0.10/24") }, command.InUse},
		{"no VLAN", func(f *FunctionConfig) { f.VLAN = 4095 }, command.Invalid},
	} {
		f := good
		x.change(&f)
		_, err := h.AddFunction(f)
		refused(t, x.name, err, x.want)
	}
	p, _ := overUDP(true)(t, AdapterConfig{})
	_, err := p.host.AddFunction(good)
	refused(t, "on UDP sockets", err, command.Unsupported)
}

// TestVirtual_Whole: a function that cannot have all that is decided about it is not added, and one that is there keeps what it had: here
// the MAC in a VLAN, which another function has.
func TestVirtual_Whole(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	vf(t, h, 10, func(f *FunctionConfig) { f.VLAN = 100 })
	same := FunctionConfig{Name: "same", MAC: [6]byte{2, 0, 0, 0, 9, 10}, Addr: netip.MustParsePrefix("10.79.0.30/24")}
	same.Virtual.VLANs.Add(100)
	_, err := h.AddFunction(same)
	refused(t, "the MAC in another's VLAN", err, command.Invalid)
	if list := h.Functions(0); len(list) != 1 {
		t.Errorf("%d functions are there, want 1", len(list))
	}
	same.Virtual = Virtual{}
	index, err := h.AddFunction(same) // its name, address and place are free
	one.check(err)
	var tagged Virtual
	tagged.VLANs.Add(100)
	tagged.Trust = true
	refused(t, "setting that", h.SetFunction(index, tagged), command.Invalid)
	if f := status(t, h, "same"); f.Config.Virtual != (Virtual{}) {
		t.Errorf("it has %+v after it was refused", f.Config.Virtual)
	}
}
