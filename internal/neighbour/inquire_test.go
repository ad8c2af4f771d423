package neighbour

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// question returns what an engine asks for an address, as macA, who has the other one.
func question(t *testing.T, vlan uint16, addr [2]netip.Addr) []byte {
	t.Helper()
	asker := New(Config{})
	asker.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]})
	all := frames(asker)
	if len(all) != 1 {
		t.Fatalf("%d questions", len(all))
	}
	return all[0]
}

// TestInquire: a host at the port that asks for a station's address learns its MAC, and the engine learns nothing from that. Others' and
// its own addresses, and what it says that is no question, are not answered.
func TestInquire(t *testing.T) {
	inFamilies(t, func(t *testing.T, vlan uint16, addr [2]netip.Addr) {
		e := engine(t, macB, vlan, addr[1])
		asker := New(Config{})
		asker.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]})
		frames(asker)
		reply := e.Inquire(nil, question(t, vlan, addr))
		if reply == nil || eth.MAC(reply) != macA || eth.MAC(reply[6:]) != macB {
			t.Fatalf("the answer is %x", reply)
		}
		if !asker.Receive(0, reply) {
			t.Errorf("the asker does not want the answer %x", reply)
		}
		if mac, known := asker.Find(0, Key{vlan, addr[1]}, Source{macA, addr[0]}); !known || mac != macB {
			t.Errorf("the asker knows %v, %v", mac, known)
		}
		if _, known := e.Find(0, Key{vlan, addr[0]}, Source{macB, addr[1]}); known {
			t.Error("the engine has learned who has asked")
		}
		frames(e)
		for what, x := range map[string][]byte{
			"another's address": question(t, vlan, [2]netip.Addr{addr[0], addr[0].Next().Next()}), "another VLAN": question(t, vlan+1, addr),
			"an answer": reply, "nothing": nil, "half a question": question(t, vlan, addr)[:30],
		} {
			if got := e.Inquire(nil, x); got != nil {
				t.Errorf("%s: the answer is %x", what, got)
			}
		}
		own := engine(t, macA, vlan, addr[1]) // the host and the station have one MAC
		if got := own.Inquire(nil, question(t, vlan, addr)); got != nil {
			t.Errorf("a host that has the address itself gets %x", got)
		}
		if len(frames(e)) != 0 {
			t.Error("something is sent on the wire")
		}
	})
}

// FuzzInquire: nothing that a host sends makes the engine fail, or learn anything.
func FuzzInquire(f *testing.F) {
	e := New(Config{})
	_ = e.Answer(Key{0, families["ipv4"][1]}, macB)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := e.Inquire(nil, b); got != nil && eth.MAC(got) != eth.MAC(b[6:]) {
			t.Errorf("%x is answered by %x", b, got)
		}
		if len(e.entries) != 0 {
			t.Error("something is learned")
		}
	})
}
