package ethernet

import (
	"testing"

	"github.com/softvpi/softvpi/internal/qos"
)

// TestSetMarking: a frame of a host has the priority of its policy, of the application that it is of, or of its DSCP, with a tag that says
// so unless there is to be none; one whose host asks for a tag keeps that (WinOF-2 Ethernet b, DSCP: TxUntagPriorityTag).
func TestSetMarking(t *testing.T) {
	policy := func(text string) qos.Policies {
		p, err := qos.ParsePolicy("x", text)
		if err != nil {
			t.Fatal(err)
		}
		return qos.Policies{p}
	}
	for _, x := range []struct {
		name     string
		m        qos.Marking
		tci      uint16
		asked    bool
		priority uint8
		tag      int // -1: none
	}{
		{"nothing", qos.Marking{}, 0, false, 0, -1},
		{"a policy", qos.Marking{Policies: policy("protocol=tcp,port=5201,priority=3")}, 0, false, 3, 3 << 13},
		{"one for others", qos.Marking{Policies: policy("protocol=udp,priority=3"), Default: 1}, 0, false, 1, -1},
		{"without a tag", qos.Marking{Policies: policy("default,priority=3"), Bare: true}, 0, false, 3, -1},
		{"an application", qos.Marking{Applications: []qos.Application{{Selector: qos.Port, Protocol: 5201, Priority: 4}}}, 0, false, 4, 4 << 13},
		{"a DSCP of 0", qos.Marking{ByDSCP: true, Default: 5}, 0, false, 0, -1},
		{"the host's wish", qos.Marking{Policies: policy("default,priority=3")}, 6<<13 | 7, true, 6, 6<<13 | 7},
	} {
		c := alone(t, plain(macA))
		c.SetMarking(x.m)
		p := posted{Send: Send{Frame: tcpFlow().frame(nil), Tagged: x.asked, TCI: x.tci}}
		if r := c.accept(&p); r != 0 {
			t.Fatalf("%s: %v", x.name, r)
		}
		tag := -1
		if p.Tagged {
			tag = int(p.TCI)
		}
		if p.priority != x.priority || tag != x.tag {
			t.Errorf("%s: priority %d, tag %#x; want %d, %#x", x.name, p.priority, tag, x.priority, x.tag)
		}
	}
}
