package packet_test

import (
	"testing"

	"github.com/cilium/ebpf/link"

	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFramesKeepToTheEntrance: packets are taken ahead of tc only while tc has nothing attached. What a program
// at the interface's ingress drops does not arrive, whether it was attached before or after the link was opened, and
// packets arrive again when it is gone.
func TestFramesKeepToTheEntrance(t *testing.T) {
	systemtest.Mark(t)
	n := linktest.NewNamespaces(t, 1500)
	l := pairOf(n, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	drop := func() (l link.Link) {
		why := error(nil)
		n.In(1, func() error { l, why = linktest.Ingress("b", linktest.Drop); return nil })
		if why != nil {
			t.Skipf("this system attaches no programs: %v", why)
		}
		return l
	}
	arrives := func() bool {
		r := routeTo(t, l[0], l[1])
		linktest.Drain(t, l[1])
		before := l[1].Stats().ReceivedPackets
		linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), 0, 8, 8))
		linktest.Drain(t, l[1])
		return l[1].Stats().ReceivedPackets != before
	}
	follow := func() { // for as long as it may take
		n.In(1, func() error {
			for range 300 {
				linktest.Tend(l[1])
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
	var other udp.Link
	n.In(1, func() (err error) {
		other, err = udp.Open(udp.Config{Addr: n.V4[1], Port: 4792, Frames: packet.On})
		return err
	})
	defer other.Close()
	r := routeTo(t, l[0], other)
	linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), 0, 8, 8))
	linktest.Drain(t, other)
	if s := other.Stats(); s.ReceivedPackets != 0 {
		t.Errorf("%d packets arrive past a program that was there first", s.ReceivedPackets)
	}
}
