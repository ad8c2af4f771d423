package membership

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

var (
	sameAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	mac      = eth.MAC{2, 0, 0, 0, 0, 1}
	router   = eth.MAC{2, 0, 0, 0, 0, 2}

	// versions are IPv4 and IPv6: who reports, and two groups.
	versions = map[string]struct {
		v6     bool
		from   netip.Addr
		groups []netip.Addr
	}{
		"igmp": {false, netip.MustParseAddr("10.0.0.1"), []netip.Addr{netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("239.1.2.4")}},
		"mld":  {true, netip.MustParseAddr("fe80::1"), []netip.Addr{netip.MustParseAddr("ff15::7"), netip.MustParseAddr("ff15::8")}},
	}
)

// message is a report as it is read from a frame.
type message struct {
	To      netip.Addr
	Records []eth.GroupRecord // of version 3 (MLD 2)
	Type    uint8             // of the others
	Group   netip.Addr
}

// reports takes the frames of a reporter, and checks what all have in common.
func reports(t *testing.T, r *Reporter, vlan uint16, from netip.Addr) (all []message) {
	t.Helper()
	for f := r.Frame(); f != nil; f = r.Frame() {
		h, b, err := eth.ParseEthernet(f)
		if err != nil {
			t.Fatal(err)
		}
		var m message
		var src netip.Addr
		var hops uint8
		if h.Type == eth.TypeIPv4 {
			ip, payload, err := eth.ParseIPv4(b)
			if err != nil || ip.HeaderLen() != 24 || [4]byte(ip[20:]) != [4]byte{0x94, 4, 0, 0} {
				t.Fatalf("%v, % x", err, b)
			}
			m.To, src, hops = ip.Dst(), ip.Src(), ip.TTL()
			if m.Records, err = eth.ParseIGMPv3Report(payload); err != nil {
				q, err := eth.ParseIGMP(payload)
				if err != nil {
					t.Fatal(err)
				}
				m.Type, m.Group = q.Type, q.Group
			}
		} else {
			ip, payload, err := eth.ParseIPv6(b)
			if err != nil {
				t.Fatal(err)
			}
			body, ok := eth.MLDMessage(ip, payload)
			if !ok {
				t.Fatalf("% x", b)
			}
			m.To, src, hops = ip.Dst(), ip.Src(), ip.HopLimit()
			if m.Records, err = eth.ParseMLDv2Report(body, src, m.To); err != nil {
				q, err := eth.ParseMLD(body, src, m.To)
				if err != nil {
					t.Fatal(err)
				}
				m.Type, m.Group = q.Type, q.Group
			}
		}
		to, _ := eth.MulticastMAC(m.To)
		if h.Src != mac || h.Dst != to || h.TCI != vlan || src != from || hops != 1 {
			t.Errorf("%+v from %v with %d hops", h, src, hops)
		}
		all = append(all, m)
	}
	return all
}

func want(t *testing.T, what string, got []message, want ...message) {
	t.Helper()
	if d := cmp.Diff(want, got, sameAddr); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func records(kind eth.GroupRecordType, groups ...netip.Addr) (list []eth.GroupRecord) {
	for _, g := range groups {
		list = append(list, eth.GroupRecord{Type: kind, Group: g})
	}
	return list
}

// query returns a general query: its body gets a correct checksum.
func query(v6 bool, vlan uint16, body []byte) []byte {
	h := eth.Ethernet{Dst: eth.Broadcast, Src: router, Tagged: vlan != 0, TCI: vlan, Type: eth.TypeIPv4}
	if !v6 {
		binary.BigEndian.PutUint16(body[2:], eth.Checksum(body))
		return eth.AppendIGMPPacket(h.Append(nil), netip.MustParseAddr("10.0.0.254"), AllSystems[0], body)
	}
	h.Type = eth.TypeIPv6
	src := netip.MustParseAddr("fe80::fe")
	binary.BigEndian.PutUint16(body[2:], eth.PseudoChecksum(src, AllSystems[1], eth.ProtocolICMPv6, body))
	return eth.AppendMLDPacket(h.Append(nil), src, AllSystems[1], body)
}

// queryOf returns a query of the newest version, or of the one before, which lets members answer within two seconds.
func queryOf(v6 bool, vlan uint16, old bool) []byte {
	n, body := 12, []byte{eth.IGMPQuery, 20}
	if old {
		n = 8
	}
	if v6 {
		n, body = n+16, []byte{eth.MLDQuery, 0, 0, 0, 2000 >> 8, 2000 & 0xff}
	}
	return query(v6, vlan, append(body, make([]byte, n-len(body))...))
}

// TestWant_ReportsChanges: what is wanted anew, and no more, is reported at once, and once more within a second (RFC 3376 5.1,
// RFC 3810 6.1).
func TestWant_ReportsChanges(t *testing.T) {
	for name, v := range versions {
		for _, vlan := range []uint16{0, 7} {
			t.Run(name, func(t *testing.T) {
				r, at, from, to := New(nil), Port{vlan, v.v6}, Source{mac, v.from}, igmpv3
				if v.v6 {
					to = mldv2
				}
				r.Want(0, at, from, append(v.groups[:1:1], AllSystems[0], AllSystems[1]))
				first := message{To: to, Records: records(eth.ChangeToExclude, v.groups[0])}
				want(t, "joined", reports(t, r, vlan, v.from), first)
				if due := r.Deadline(); due <= 0 || due > clock.Time(time.Second) {
					t.Errorf("once more at %v", due)
				}
				r.Advance(r.Deadline())
				want(t, "once more", reports(t, r, vlan, v.from), first)
				if r.Deadline() != clock.Never {
					t.Error("and again")
				}
				r.Want(0, at, from, v.groups)
				r.Want(0, at, from, v.groups[1:])
				second := records(eth.ChangeToExclude, v.groups[1])
				want(t, "another, and not the first", reports(t, r, vlan, v.from), message{To: to, Records: second},
					message{To: to, Records: append(records(eth.ChangeToInclude, v.groups[0]), second...)})
				r.Want(0, at, Source{}, nil)
				for r.Deadline() != clock.Never {
					r.Advance(r.Deadline())
				}
				if all := reports(t, r, vlan, v.from); len(all) < 2 || !slices.ContainsFunc(all[len(all)-1].Records,
					func(g eth.GroupRecord) bool { return g.Group == v.groups[1] && g.Type == eth.ChangeToInclude }) {
					t.Errorf("the last one: %+v", all)
				}
				if len(r.ports) != 0 {
					t.Error("a port without groups is kept")
				}
			})
		}
	}
}

// TestReceive_QueryIsAnswered: within the time that a query gives, all groups are reported, in the version of the query; a query
// on another VLAN is not answered.
func TestReceive_QueryIsAnswered(t *testing.T) {
	for name, v := range versions {
		t.Run(name, func(t *testing.T) {
			r, at, from := New(nil), Port{7, v.v6}, Source{mac, v.from}
			r.Want(0, at, from, v.groups)
			for r.Deadline() != clock.Never {
				r.Advance(r.Deadline())
			}
			reports(t, r, 7, v.from)
			other := queryOf(v.v6, 0, false)
			if !Concerns(other) {
				t.Error("a query is none")
			}
			r.Receive(0, other)
			if r.Deadline() != clock.Never {
				t.Error("a query on another VLAN is answered")
			}
			r.Receive(0, queryOf(v.v6, 7, false))
			if due := r.Deadline(); due <= 0 || due > clock.Time(2*time.Second) {
				t.Fatalf("the answer comes at %v", due)
			}
			r.Advance(r.Deadline())
			to, kind, leave, routers := igmpv3, uint8(eth.IGMPv2Report), uint8(eth.IGMPv2Leave), routers4
			if v.v6 {
				to, kind, leave, routers = mldv2, eth.MLDv1Report, eth.MLDv1Done, routers6
			}
			want(t, "answer", reports(t, r, 7, v.from), message{To: to, Records: records(eth.ModeIsExclude, v.groups...)})
			r.Receive(0, queryOf(v.v6, 7, true))
			r.Advance(r.Deadline())
			want(t, "answer to an old querier", reports(t, r, 7, v.from), message{To: v.groups[0], Type: kind, Group: v.groups[0]},
				message{To: v.groups[1], Type: kind, Group: v.groups[1]})
			r.Want(0, at, from, v.groups[:1])
			want(t, "left, to an old querier", reports(t, r, 7, v.from), message{To: routers, Type: leave, Group: v.groups[1]})
		})
	}
}

// TestReport_ManyGroups: a report has no more groups than fit a frame.
func TestReport_ManyGroups(t *testing.T) {
	r := New(nil)
	var groups []netip.Addr
	for i := range 150 {
		groups = append(groups, netip.AddrFrom4([4]byte{239, 0, 0, byte(i)}))
	}
	r.Want(0, Port{}, Source{MAC: mac}, groups)
	n := 0
	for _, m := range reports(t, r, 0, netip.IPv4Unspecified()) {
		if n += len(m.Records); len(m.Records) > mostRecords {
			t.Errorf("%d groups in a report", len(m.Records))
		}
	}
	if n != 150 {
		t.Errorf("%d groups are reported, want 150", n)
	}
}

// TestCode: times from 128 on are floating point (RFC 3376 4.1.1).
func TestCode(t *testing.T) {
	for c, want := range map[uint8]int{0: 0, 127: 127, 0x80: 128, 0x8f: 248, 0xff: 31744} {
		if got := code(c); got != want {
			t.Errorf("%#x is %d, want %d", c, got, want)
		}
	}
}

// FuzzReceive: no frames make a reporter panic, or answer more than once.
func FuzzReceive(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		for _, old := range []bool{false, true} {
			f.Add(queryOf(v6, 0, old))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := New(nil)
		for _, v := range versions {
			r.Want(0, Port{0, v.v6}, Source{mac, v.from}, v.groups[:1])
		}
		for r.Deadline() != clock.Never {
			r.Advance(r.Deadline())
		}
		for r.Frame() != nil {
		}
		concerns := Concerns(b)
		r.Receive(0, b)
		if r.Deadline() != clock.Never && !concerns {
			t.Errorf("% x is answered, but is no query", b)
		}
		for r.Deadline() != clock.Never {
			r.Advance(r.Deadline())
		}
		n := 0
		for r.Frame() != nil {
			n++
		}
		if n > 1 {
			t.Errorf("%d answers", n)
		}
	})
}
