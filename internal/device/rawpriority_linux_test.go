package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/qos"
)

// TestRawPackets_Priorities: frames of raw packet QPs leave at the priority of their tag; others at that of the longest policy, of an
// application, of their DSCP where that is trusted, or at the default, by the rules of the moment. What is in them stays.
func TestRawPackets_Priorities(t *testing.T) {
	_, _, third := threeEnds(t)
	tx := third.rawEnd()
	plain := udpFrame([6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 3}, 5678, 200)
	plain[15], plain[38], plain[39] = 6<<5, 0, 200-34 // a UDP header that is right
	policy := func(text string) qos.Policies {
		p, err := qos.ParsePolicy("RAW", text)
		if err != nil {
			t.Fatal(err)
		}
		return qos.Policies{p}
	}
	udp := []qos.Application{{Selector: qos.UDP, Protocol: 5678, Priority: 4}}
	for _, x := range []struct {
		name  string
		m     qos.Marking
		apps  []qos.Application
		frame []byte
		want  int
	}{
		{name: "a tag", frame: tagged(plain, 5<<13|7), want: 5},
		{name: "a tag before a policy", m: qos.Marking{Policies: policy("protocol=udp,priority=2")}, frame: tagged(plain, 5<<13), want: 5},
		{name: "a policy", m: qos.Marking{Policies: policy("protocol=udp,port=5000-6000,priority=2")}, apps: udp, frame: plain, want: 2},
		{name: "a policy for others", m: qos.Marking{Policies: policy("protocol=tcp,priority=2")}, apps: udp, frame: plain, want: 4},
		{name: "its DSCP", m: qos.Marking{ByDSCP: true}, frame: plain, want: 6},
		{name: "the default", m: qos.Marking{Default: 1}, frame: plain, want: 1},
	} {
		own := qos.Operative{Settings: qos.Defaults()}
		own.Applications = x.apps
		third.check(third.host.SetPriorities(third.adapter, Priorities{Own: own, Marking: x.m}))
		before := third.host.Counters()[third.adapter].Sent[x.want].Packets
		tx.sends(x.frame)
		if n := third.host.Counters()[third.adapter].Sent[x.want].Packets - before; n != 1 {
			t.Errorf("%s: %d frames left at priority %d", x.name, n, x.want)
		}
	}
}
