package ipoib

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// grant grants everything that an interface requests from the subnet administration, and passes its other actions to
// other.
func grant(i *Interface, other func(Action)) {
	for a, ok := i.Take(); ok; a, ok = i.Take() {
		r, is := a.(Request)
		if !is {
			if other != nil {
				other(a)
			}
			continue
		}
		m, _ := mad.ParseSA(r.MAD[:])
		m.Method |= 0x80
		if m.AttributeID == mad.AttrMCMemberRecord {
			rec, _ := mad.ParseMCMemberRecord(m.Data[:])
			rec.MLID, rec.MTU, rec.QKey, rec.Rate = 0xc000|ib.LID(rec.MGID[15])|ib.LID(rec.MGID[14])<<8&0x1f00, ib.MTU2048, 0xb1b, 3
			rec.Append(m.Data[:0])
		} else {
			p, _ := mad.ParsePathRecord(m.Data[:])
			p.DLID, p.Rate = ib.LID(p.DGID[15])+1, 3
			p.Append(m.Data[:0])
		}
		i.Response(0, m.Append(nil))
	}
}

func igmp(m eth.IGMP, src, dst netip.Addr) []byte {
	body := m.Append(nil)
	b := make([]byte, eth.IPv4Len)
	eth.IPv4(b).Encode(0, len(b)+len(body), 0, 1, eth.ProtocolIGMP, src.As4(), dst.As4())
	return append(b, body...)
}

func igmp3(records ...eth.GroupRecord) []byte {
	body := eth.AppendIGMPv3Report(nil, records)
	b := make([]byte, eth.IPv4Len)
	eth.IPv4(b).Encode(0, len(b)+len(body), 0, 1, eth.ProtocolIGMP, v4(0).As4(), [4]byte{224, 0, 0, 22})
	return append(b, body...)
}

func mld2(src netip.Addr, records ...eth.GroupRecord) []byte {
	dst := netip.MustParseAddr("ff02::16")
	body := eth.AppendMLDv2Report(eth.AppendRouterAlert(nil, eth.ProtocolICMPv6), src, dst, records)
	// The checksum covers the message only.
	b := make([]byte, eth.IPv6Len)
	eth.IPv6(b).Encode(0, 0, len(body), eth.ProtocolHopByHop, 1, src.As16(), dst.As16())
	return append(b, body...)
}

// TestSnooping: a membership report of the system makes the interface a full member of the group, and a leave ends
// that: IGMP versions 2 and 3, MLD version 2.
func TestSnooping(t *testing.T) {
	g4, g6 := netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("ff05::1234")
	for _, c := range []struct {
		name        string
		group       netip.Addr
		join, leave []byte
	}{
		{"IGMPv2", g4, igmp(eth.IGMP{Type: eth.IGMPv2Report, Group: g4}, v4(0), g4), igmp(eth.IGMP{Type: eth.IGMPv2Leave, Group: g4}, v4(0),
			netip.MustParseAddr("224.0.0.2"))},
		{"IGMPv3", g4, igmp3(eth.GroupRecord{Type: eth.ChangeToExclude, Group: g4}),
			igmp3(eth.GroupRecord{Type: eth.ChangeToInclude, Group: g4})},
		{"MLDv2", g6, mld2(v6(0), eth.GroupRecord{Type: eth.ChangeToExclude, Group: g6}), mld2(v6(0),
			eth.GroupRecord{Type: eth.ChangeToInclude, Group: g6})},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetwork(t, 3, subnet.Config{}, defaults)
			w.run(time.Second)
			mgid, _ := groupMGID(c.group, linkLocalScope, 0xffff)
			h := w.hosts[0]
			w.send(h, c.join)
			w.run(time.Second)
			if h.attached[mgid] == 0 {
				t.Fatal("the queue pair is not attached to the group")
			}
			src := v4(1)
			if c.group.Is6() {
				src = v6(1)
			}
			w.send(w.hosts[1], udp(src, c.group, 10)) // its sender is not a member
			w.run(time.Second)
			if len(h.got) != 1 || len(w.hosts[2].got) != 0 || w.hosts[1].attached[mgid] != 0 {
				t.Errorf("the member got %d packets, the other host %d; want 1 and none", len(h.got), len(w.hosts[2].got))
			}
			w.send(h, c.leave)
			w.run(time.Second)
			if h.attached[mgid] != 0 || h.groups[mgid] != nil {
				t.Error("the interface is still in the group after the leave")
			}
			w.send(w.hosts[1], udp(src, c.group, 10))
			w.run(time.Second)
			if len(h.got) != 1 {
				t.Error("packets to the group still arrive after the leave")
			}
		})
	}
}

// TestMonitor: the multicast monitor runs every 30 s. After McastIgmpMldGeneralQueryInterval runs it asks the system
// for its groups, and groups not reported within McastQueryResponseInterval runs are left. Groups that are never
// reported, such as all nodes, are kept.
func TestMonitor(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, func(int) Config { return Config{GeneralQueryRuns: 2, QueryResponseRuns: 2} })
	w.run(time.Second)
	h := w.hosts[0]
	kept, lost := netip.MustParseAddr("239.0.0.1"), netip.MustParseAddr("239.0.0.2")
	report := func(g netip.Addr) { w.send(h, igmp(eth.IGMP{Type: eth.IGMPv2Report, Group: g}, v4(0), g)) }
	report(kept)
	report(lost)
	in := func(g netip.Addr) bool {
		mgid, _ := groupMGID(g, linkLocalScope, 0xffff)
		return h.attached[mgid] != 0
	}
	h.delivered = nil
	w.run(58 * time.Second) // up since second 1, now second 60: one run
	if len(h.delivered) != 0 {
		t.Fatal("queried before the second run")
	}
	w.run(3 * time.Second)
	if len(h.delivered) != 2 {
		t.Fatalf("%d queries, want 2", len(h.delivered))
	}
	ip, body, err := eth.ParseIPv4(h.delivered[0])
	if q, err2 := eth.ParseIGMP(body); err != nil || err2 != nil || q.Type != eth.IGMPQuery || !q.Group.IsUnspecified() ||
		ip.Dst().String() != "224.0.0.1" || ip.TTL() != 1 {
		t.Errorf("IGMP query %x: %v, %v", h.delivered[0], err, err2)
	}
	six, payload, err := eth.ParseIPv6(h.delivered[1])
	message, _ := behindOptions(payload)
	if q, err2 := eth.ParseMLD(message, six.Src(), six.Dst()); err != nil || err2 != nil || q.Type != eth.MLDQuery ||
		!six.Src().IsLinkLocalUnicast() || six.HopLimit() != 1 {
		t.Errorf("MLD query %x: %v, %v", h.delivered[1], err, err2)
	}
	report(kept)
	w.run(57 * time.Second)
	if !in(kept) || !in(lost) {
		t.Fatal("left before the time for answers is over")
	}
	w.run(3 * time.Second)
	if !in(kept) || in(lost) || !in(allNodes[0]) || !in(allNodes[1]) || !in(eth.SolicitedNode(v6(0))) {
		t.Errorf("kept %v, lost %v, all nodes %v, %v", in(kept), in(lost), in(allNodes[0]), in(allNodes[1]))
	}
}

// TestGroupWithoutMembers: packets to a group without members are dropped and counted, and the group is asked for
// again no sooner than a second later.
func TestGroupWithoutMembers(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, defaults)
	w.run(time.Second)
	h := w.hosts[0]
	w.asked = 0
	for range 50 {
		w.send(h, udp(v4(0), netip.MustParseAddr("239.9.9.9"), 1))
		w.run(10 * time.Millisecond)
	}
	if c := h.Counters(); w.asked != 1 || c.DroppedNoRoute != 50 {
		t.Errorf("%d requests, %d packets dropped; want 1 and 50", w.asked, c.DroppedNoRoute)
	}
	w.run(10 * time.Minute)
	if mgid, _ := groupMGID(netip.MustParseAddr("239.9.9.9"), 2, 0xffff); h.groups[mgid] != nil {
		t.Error("a group without members is kept for ever")
	}
}

// TestGroupLimit: no more groups are joined than MaxNumOfMCList allows; one that is only sent to makes room for a
// membership.
func TestGroupLimit(t *testing.T) {
	i, _ := New(Config{MaxGroups: 64}, func() uint64 { return 1 })
	i.SetQueuePair(0, one.QPN)
	i.SetPort(0, Port{Active: true, LID: 3, GID: one.GID, SMLID: 1, PKeys: []ib.PKey{0xffff}, MTU: ib.MTU2048})
	grant(i, nil)
	for n := range 200 {
		i.Send(clock.Time(n), udp(v4(0), netip.AddrFrom4([4]byte{239, 1, 0, byte(n)}), 1))
		grant(i, nil)
	}
	if len(i.groups) != 64 || i.broadcast == nil || i.groups[i.broadcast.mgid] == nil {
		t.Fatalf("%d groups, want 64 with the broadcast group", len(i.groups))
	}
	for n := range 200 {
		i.member(0, netip.AddrFrom4([4]byte{239, 2, 0, byte(n)}), false)
		grant(i, nil)
	}
	full := 0
	for _, g := range i.groups {
		if g.want == joinFull {
			full++
		}
	}
	if len(i.groups) != 64 || full != 64 {
		t.Errorf("%d groups, %d of them with full membership; want 64 of 64", len(i.groups), full)
	}
}
