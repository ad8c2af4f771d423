package udp

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// dropAtEntrance attaches a program to an interface of this thread's network namespace that drops everything that
// comes in (tcx, Linux 6.6), until the result is closed.
func dropAtEntrance(name string) (link.Link, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	const tcxDrop = 2 // linux/bpf.h
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxDrop), asm.Return()}})
	if err != nil {
		return nil, err
	}
	defer program.Close()
	return link.AttachTCX(link.TCXOptions{Interface: l.Attrs().Index, Program: program, Attach: ebpf.AttachTCXIngress})
}

// TestFramesKeepToTheEntrance: packets are taken ahead of tc only while tc has nothing attached. What a program
// at the interface's ingress drops does not arrive, whether it was attached before or after the link was opened, and
// packets arrive again when it is gone.
func TestFramesKeepToTheEntrance(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	drop := func() (l link.Link) {
		why := error(nil)
		n.in(1, func() error { l, why = dropAtEntrance("b"); return nil })
		if why != nil {
			t.Skipf("this system attaches no programs: %v", why)
		}
		return l
	}
	arrives := func() bool {
		r := routeTo(t, l[0], l[1])
		drain(t, l[1])
		before := l[1].Stats().ReceivedPackets
		sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 8))
		drain(t, l[1])
		return l[1].Stats().ReceivedPackets != before
	}
	follow := func() { // for as long as it may take
		n.in(1, func() error {
			for range 300 {
				tend(l[1])
			}
			return nil
		})
	}
	for range 2 {
		dropping := drop()
		follow()
		if arrives() {
			t.Error("a packet that tc drops arrived")
		}
		dropping.Close()
		follow()
		if !arrives() {
			t.Error("no packet arrives after the program was removed")
		}
	}
	defer drop().Close()
	var other Link
	n.in(1, func() (err error) {
		other, err = Open(Config{Addr: n.v4[1], Port: 4792, Frames: packet.On})
		return err
	})
	defer other.Close()
	r := routeTo(t, l[0], other)
	sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 8))
	drain(t, other)
	if s := other.Stats(); s.ReceivedPackets != 0 {
		t.Errorf("%d packets arrive past a program that was there first", s.ReceivedPackets)
	}
}
