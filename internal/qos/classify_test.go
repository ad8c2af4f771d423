package qos

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// ofIP returns a frame with an IP header of a version and a class; tci < 0: without a tag.
func ofIP(t eth.EtherType, class uint8, tci int) []byte {
	e := eth.Ethernet{Type: t, Tagged: tci >= 0, TCI: uint16(max(tci, 0))}
	b := make([]byte, e.Len()+40)
	e.Put(b)
	switch ip := b[e.Len():]; t {
	case eth.TypeIPv4:
		ip[0], ip[1] = 0x45, class
	case eth.TypeIPv6, eth.TypeRoCEv1:
		ip[0], ip[1] = 0x60|class>>4, class<<4
	}
	return b
}

// TestClassifier: by PCP or by DSCP, and what has neither has the priority of untagged frames.
func TestClassifier(t *testing.T) {
	pcp, dscp := Classifier{Untagged: 2}, Classifier{ByDSCP: true, Untagged: 2}
	for _, x := range []struct {
		name  string
		c     *Classifier
		frame []byte
		want  uint8
		named bool
	}{
		{"no tag", &pcp, ofIP(eth.TypeIPv4, 46<<2, -1), 2, false},
		{"a tag with a VLAN", &pcp, ofIP(eth.TypeIPv4, 46<<2, 3<<13|7), 3, true},
		{"a priority tag of 0", &pcp, ofIP(eth.TypeIPv4, 46<<2, 0), 0, true},
		{"DSCP 46", &dscp, ofIP(eth.TypeIPv4, 46<<2|1, -1), 5, true},
		{"DSCP 46, IPv6", &dscp, ofIP(eth.TypeIPv6, 46<<2|1, -1), 5, true},
		{"DSCP 26, RoCE v1", &dscp, ofIP(eth.TypeRoCEv1, 26<<2, -1), 3, true},
		{"DSCP 9 in a tag of priority 7", &dscp, ofIP(eth.TypeIPv4, 9<<2, 7<<13|9), 1, true},
		{"no IP", &dscp, ofIP(eth.TypeARP, 0, -1), 2, false},
		{"no IP, in a tag", &dscp, ofIP(eth.TypeARP, 0, 6<<13), 6, true},
	} {
		if p, named := x.c.Frame(x.frame); p != x.want || named != x.named {
			t.Errorf("%s: priority %d, named %v; want %d, %v", x.name, p, named, x.want, x.named)
		}
	}
	if pcp.OfClass(46<<2) != 2 || dscp.OfClass(46<<2) != 5 {
		t.Error("of a packet without a frame")
	}
}

// TestOfDSCP is the manual's table: 0-7 is priority 0, 8-15 is 1, ... 56-63 is 7.
func TestOfDSCP(t *testing.T) {
	for dscp := range uint8(64) {
		if got, want := OfDSCP(dscp), dscp/8; got != want {
			t.Errorf("DSCP %d has priority %d, want %d", dscp, got, want)
		}
	}
}

// TestClassifier_Any: any bytes have a priority, and IPv4 and IPv6 of one DSCP have the same.
func TestClassifier_Any(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := Classifier{ByDSCP: rapid.Bool().Draw(r, "by DSCP"), Untagged: rapid.Uint8Range(0, 7).Draw(r, "untagged")}
		if p, _ := c.Frame(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(r, "frame")); p > 7 {
			r.Errorf("priority %d", p)
		}
		class, tci := rapid.Byte().Draw(r, "class"), rapid.IntRange(-1, 0xffff).Draw(r, "TCI")
		p4, _ := c.Frame(ofIP(eth.TypeIPv4, class, tci))
		if p6, _ := c.Frame(ofIP(eth.TypeIPv6, class, tci)); p4 != p6 {
			r.Errorf("IPv4 has priority %d and IPv6 %d", p4, p6)
		}
	})
}

func BenchmarkClassifier(b *testing.B) {
	frame := ofIP(eth.TypeIPv4, 46<<2, -1)
	for _, c := range []Classifier{{}, {ByDSCP: true}} {
		b.Run(map[bool]string{false: "pcp", true: "dscp"}[c.ByDSCP], func(b *testing.B) {
			n := 0
			for b.Loop() {
				p, _ := c.Frame(frame)
				n += int(p)
			}
			_ = n
		})
	}
}
