package station

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestListen: who listens to a MAC gets every frame to it and to groups, whatever it carries and in every VLAN; the stations
// of the link answer questions all the same.
func TestListen(t *testing.T) {
	b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	ask := eth.ARP{Operation: eth.ARPRequest, SenderMAC: mac(9), SenderIP: netip.MustParseAddr("10.0.0.9"),
		TargetIP: netip.MustParseAddr("10.0.0.1")}
	question := frameTo(eth.Broadcast, 0, eth.TypeARP, ask.Append(nil))
	frames := map[string][]byte{
		"to the MAC":            frameTo(mac(7), 0, eth.TypeIPv4, nil),
		"to the MAC, in a VLAN": frameTo(mac(7), 77, eth.TypeIPv4, nil),
		"to a group":            frameTo(eth.MAC{1, 0, 0x5e, 1, 2, 3}, 0, eth.TypeIPv4, nil),
		"a question":            question,
	}
	for name, f := range frames {
		if b.Wants(f) {
			t.Errorf("%s: it is handed up to nobody", name)
		}
	}
	if n := len(b.sent()); n != 1 {
		t.Fatalf("%d answers to a question", n)
	}
	if err := errors.Join(b.Listen(mac(7), false), b.Listen(mac(7), true)); err != nil {
		t.Fatal(err)
	}
	for name, f := range frames {
		if !b.Wants(f) {
			t.Errorf("%s: it is not handed up", name)
		}
	}
	if n := len(b.sent()); n != 1 {
		t.Errorf("%d answers to a question that somebody listens to", n)
	}
	if b.Wants(frameTo(mac(8), 0, eth.TypeIPv4, nil)) || !b.Wants(frameTo(mac(1), 0, eth.TypeIPv4, nil)) {
		t.Error("frames to others than who listens")
	}
	if !b.HearsLarge(frames["to the MAC"]) || b.HearsLarge(frames["to a group"]) || b.HearsLarge(frameTo(mac(1), 0, eth.TypeIPv4, nil)) {
		t.Error("large frames are for who takes them alone")
	}
	var e *FieldError
	if err := b.Listen(eth.Broadcast, true); !errors.As(err, &e) || e.Field != "MAC" {
		t.Errorf("listening to everybody: %v", err)
	}
	if err := b.Unlisten(mac(7)); err != nil || b.Wants(frames["to the MAC"]) || b.Listened() {
		t.Errorf("nobody listens any more: %v", err)
	}
	if err := b.Unlisten(mac(7)); !errors.As(err, &e) {
		t.Errorf("undone twice: %v", err)
	}
}

// frameTo returns a frame.
func frameTo(dst eth.MAC, vlan uint16, kind eth.EtherType, payload []byte) []byte {
	h := eth.Ethernet{Dst: dst, Src: mac(9), Tagged: vlan != 0, TCI: vlan, Type: kind}
	b := make([]byte, h.Len())
	h.Put(b)
	return append(append(b, payload...), make([]byte, 46)...)
}

// TestHear: frames to a group that is heard are handed up, whoever listens.
func TestHear(t *testing.T) {
	b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	group := eth.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}
	f, other := frameTo(group, 0, 0x88cc, nil), frameTo(eth.PauseMAC, 0, 0x8808, nil)
	if b.Wants(f) {
		t.Error("it is handed up to nobody")
	}
	if err := errors.Join(b.Hear(group, true), b.Hear(group, true)); err != nil || !b.Wants(f) || b.Wants(other) {
		t.Errorf("%v: %v, another %v", err, b.Wants(f), b.Wants(other))
	}
	if _, groups := b.MACs(); len(groups) == 0 || groups[len(groups)-1] != group {
		t.Errorf("the interface listens to %v", groups)
	}
	if err := b.Hear(group, false); err != nil || b.Wants(f) {
		t.Errorf("%v: no longer %v", err, b.Wants(f))
	}
	var e *FieldError
	if err := b.Hear(mac(7), true); !errors.As(err, &e) || e.Field != "group" {
		t.Errorf("one that is no group: %v", err)
	}
	for i := range mostHeard + 1 {
		err := b.Hear(eth.MAC{1, byte(i)}, true)
		if (err != nil) != (i == mostHeard) {
			t.Errorf("group %d: %v", i, err)
		}
	}
}

// TestInquired: a host behind a function at the port that asks everybody for a station's address gets the answer as if it had arrived,
// and its question goes out all the same. What asks for nothing of the stations' is not answered.
func TestInquired(t *testing.T) {
	b := newBed(t, Config{}, at(1, 0, "10.0.0.1/24"))
	b.sent()
	for target, want := range map[string]int{"10.0.0.1": 1, "10.0.0.2": 0} {
		ask := eth.ARP{Operation: eth.ARPRequest, SenderMAC: mac(9), SenderIP: netip.MustParseAddr("10.0.0.9"),
			TargetIP: netip.MustParseAddr(target)}
		var o frame.Out
		o.Reset(nil)
		o.HeadEnd += uint16(copy(o.Head[o.HeadStart:], frameTo(eth.Broadcast, 0, eth.TypeARP, ask.Append(nil))))
		if !b.Goes(&o) {
			t.Errorf("%s: the question does not leave", target)
		}
		var in [4]frame.In
		n := b.Looped(in[:])
		if n != want || n == 1 && (eth.MAC(in[0].Data) != mac(9) || eth.MAC(in[0].Data[6:]) != mac(1)) {
			t.Errorf("%s: %d answers, want %d: %x", target, n, want, in[0].Data)
		}
	}
	if n := len(b.sent()); n != 0 {
		t.Errorf("%d frames of the link's own on the wire", n)
	}
}
