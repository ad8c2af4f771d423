package device

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// rawEndWith is rawEnd with flags.
func (p *program) rawEndWith(flags uint32) *rawEnd {
	p.t.Helper()
	r := command.CreateQP{Type: command.RawPacket, SendSGE: 1, RecvSGE: 1, Flags: flags}
	q := &rawEnd{pair: p.qp(r, p.cq(256)), b: p.buffer(1 << 16)}
	for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
		p.check(p.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: s}))
	}
	return q
}

// tagged puts a C-VLAN tag into a frame.
func tagged(f []byte, tci uint16) []byte {
	b := append(bytes.Clone(f[:12]), 0x81, 0)
	return append(binary.BigEndian.AppendUint16(b, tci), f[12:]...)
}

// TestRawPackets_Flags: what a raw packet QP receives is without its tag, which the completion has, and with its frame check sequence,
// as far as its flags say, from programs of the driver and over the wire; they can be changed.
func TestRawPackets_Flags(t *testing.T) {
	one, two, third := threeEnds(t)
	here, there := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 3}
	const all = command.QPStripVLAN | command.QPScatterFCS
	for _, from := range []*program{two, third} {
		tx, rx := from.rawEnd(), one.rawEndWith(all)
		flow := rx.flow(toMAC(here, 0))
		for _, n := range []int{60, 61, 500, 4200} {
			plain := udpFrame(here, there, 7, n)
			for _, sent := range [][]byte{plain, tagged(plain, 0x2007)} {
				for flags := uint32(0); flags < 8; flags += 4 {
					for fcs := uint32(0); fcs < 16; fcs += 8 {
						set := command.SetFrameFlags{QP: rx.q.Handle, Flags: flags | fcs, Mask: all}
						one.check(one.c.SetFrameFlags(bg, set))
						want, tag := sent, uint32(0)
						if flags != 0 && len(sent) > len(plain) {
							want, tag = plain, 0x2007
						}
						if fcs != 0 {
							want = binary.LittleEndian.AppendUint32(bytes.Clone(want), crc32.ChecksumIEEE(sent))
						}
						rx.receive(1)
						tx.sends(sent)
						e := rx.cq.next()
						if got := rx.b.b[:e.ByteLen]; !bytes.Equal(got, want) || e.Imm != tag || e.Flags&ring.HasImm != 0 {
							t.Errorf("%d bytes, flags %#x: %d bytes with tag %#x, want %d with %#x", len(sent), flags|fcs, len(got), e.Imm,
								len(want), tag)
						}
					}
				}
			}
		}
		one.check(one.c.Destroy(bg, command.KindFlow, flow))
	}
	rc := one.qp(command.CreateQP{}, one.cq(16))
	for what, r := range map[string]command.SetFrameFlags{
		"of RC": {QP: rc.q.Handle, Mask: all}, "unknown": {QP: one.rawEnd().q.Handle, Mask: command.QPSignalAll},
	} {
		if err := one.c.SetFrameFlags(bg, r); codeOf(err) != command.Invalid {
			t.Errorf("flags %s: %v, want Invalid", what, err)
		}
	}
	if _, err := one.c.CreateQP(bg, command.CreateQP{PD: one.pd, Type: command.UD, SendCQ: one.cq(16).q.Handle, RecvCQ: one.cq(16).q.Handle,
		Flags: command.QPStripVLAN}); codeOf(err) != command.Invalid {
		t.Errorf("a UD QP with flags for frames: %v", err)
	}
}

// TestRawPackets_BlockSelf: a frame to a group comes back to the QP that has sent it, unless that was created with the flag; others at
// the port and beyond it get it in any case.
func TestRawPackets_BlockSelf(t *testing.T) {
	one, two, third := threeEnds(t)
	group := [6]byte{1, 0, 0x5e, 1, 1, 1}
	for _, flags := range []uint32{0, command.QPBlockSelfMulticast} {
		self, beside, near, far := one.rawEndWith(flags), one.rawEndWith(command.QPBlockSelfMulticast), two.rawEnd(), third.rawEnd()
		var flows []command.Handle
		for _, q := range []*rawEnd{self, beside, near, far} {
			q.receive(4)
			flows = append(flows, q.flow(toMAC(group, 0)))
		}
		f := udpFrame(group, [6]byte{2, 0, 0, 0, 9, 1}, 7, 200+int(flags))
		self.sends(f)
		for name, q := range map[string]*rawEnd{"of its adapter": beside, "of the other adapter": near, "of the other end": far} {
			q.gets("the QP "+name, f)
		}
		back := udpFrame(group, [6]byte{2, 0, 0, 0, 9, 1}, 7, 300+int(flags))
		beside.sends(back)
		if flags == 0 {
			self.gets("the QP itself", f)
		}
		self.gets("from another", back) // and nothing of its own before it, with the flag
		near.gets("from another", back)
		far.gets("from another", back)
		for i, p := range []*program{one, one, two, third} {
			p.check(p.c.Destroy(bg, command.KindFlow, flows[i]))
		}
	}
}

// TestRawPackets_DelayDrop: frames wait for the receives of a QP with the flag, in their order, and are lost after a while; a QP beside
// it gets its own meanwhile.
func TestRawPackets_DelayDrop(t *testing.T) {
	now := clock.Time(time.Second) // passes for the two functions when the test says so
	one, _, third := threeEndsWith(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return now }})
	pass := func(d time.Duration) {
		now = now.Add(d)
		one.c.Poll(1)
	}
	here, there := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 3}
	tx, rx, beside := third.rawEnd(), one.rawEndWith(command.QPDelayDrop), one.rawEnd()
	rule := toMAC(here, 0)
	rule.Layers |= command.FlowIPv4 | command.FlowUDP
	rule.Value.DstPort, rule.Mask.DstPort = 7, 0xffff
	flow := rx.flow(rule)
	rule.Value.DstPort = 8
	beside.flow(rule)
	beside.receive(1)
	for n := range 5 {
		tx.sends(udpFrame(here, there, 7, 100+n))
	}
	last := udpFrame(here, there, 8, 99)
	tx.sends(last)
	beside.gets("the QP beside", last)
	rx.receive(5)
	pass(command.DelayDrop / 2)
	for n := range 5 {
		if got := rx.got(); len(got) != 100+n {
			t.Fatalf("frame %d has %d bytes", n, len(got))
		}
	}
	if c, err := one.c.FlowCounters(bg, flow); err != nil || c.Frames != 5 || c.Lost != 0 {
		t.Errorf("the flow counts %+v, %v", c, err)
	}
	tx.sends(udpFrame(here, there, 7, 100))
	counts := func() command.FlowCounters {
		c, err := one.c.FlowCounters(bg, flow)
		one.check(err)
		return c
	}
	beside.receive(1)
	tx.sends(last)
	beside.gets("the QP beside", last) // before which the frame has come
	if pass(command.DelayDrop - 1); counts().Lost != 0 {
		t.Error("the frame is lost too soon")
	}
	for range 10 { // it is looked at now and then
		pass(command.DelayDrop / 10)
	}
	if n := counts().Lost; n != 1 {
		t.Errorf("%d frames are lost, want 1", n)
	}
	tx.sends(udpFrame(here, there, 7, 100))
	one.check(one.c.Destroy(bg, command.KindFlow, flow)) // with a frame that waits
	one.check(one.c.Destroy(bg, command.KindQP, rx.q.Handle))
	beside.receive(1)
	tx.sends(last)
	beside.gets("the QP beside", last)
}
