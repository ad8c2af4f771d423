package device

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// framed are the RoCE modes that have frames of their own.
var framed = []uint32{RoCEv1, RoCEv125}

// TestRoCEv1_Operations: every operation of a connection in RoCE v1 and v1.25, in both families, untagged and in a VLAN.
// Packets go between the GIDs: those of the MACs (annex A16), or the IP addresses.
func TestRoCEv1_Operations(t *testing.T) {
	for _, mode := range framed {
		t.Run(roceVersion(mode), func(t *testing.T) {
			eachStation(t, func(t *testing.T, stations [2]link.Station) {
				c := pairs(t, whole{"datagrams", overDatagrams}.on(stations), AdapterConfig{RoCE: mode, Path: PathWire})
				operations(t, c)
				want := stations[1].Prefixes[0].Addr()
				if mode == RoCEv1 {
					want = netip.AddrFrom16(ib.GIDFromMAC(stations[1].MAC, stations[1].VLAN))
				}
				if got := c.a.info().Attr.Route.Addr.IP(); got != want {
					t.Errorf("packets go to %v, want %v", got, want)
				}
			})
		})
	}
}

// TestRoCEv1_Datagrams: a datagram's receive begins with the GRH of its packet (IBA 11.4.1.2), whose GIDs are the ends'.
func TestRoCEv1_Datagrams(t *testing.T) {
	const qkey = 0x1234
	for _, mode := range framed {
		t.Run(roceVersion(mode), func(t *testing.T) {
			stations := stationsOf(0, false)
			x, y := whole{"datagrams", overDatagrams}.on(stations).make(t, AdapterConfig{RoCE: mode})
			a, b := x.qp(command.CreateQP{Type: command.UD}, x.cq(16)), y.qp(command.CreateQP{Type: command.UD}, y.cq(16))
			a.toDatagrams(qkey)
			b.toDatagrams(qkey)
			var gids [2]netip.Addr
			for i, s := range stations {
				if gids[i] = s.Prefixes[0].Addr(); mode == RoCEv1 {
					gids[i] = netip.AddrFrom16(ib.GIDFromMAC(s.MAC, 0))
				}
			}
			src, dst := x.buffer(64), y.buffer(256)
			copy(src.b, "datagram")
			b.postRecv(1, dst.sge(0, 256))
			x.check(a.sendTo(gids[1], b.q.Number, qkey, src.sge(0, 8)))
			wantSuccess(t, a.cq.next(), 0, ring.CQSend)
			e := b.cq.next()
			wantSuccess(t, e, 1, ring.CQRecv)
			grh := ib.GRH(dst.b[:ib.GRHLen])
			if e.Flags&ring.HasGRH == 0 || grh.SGID().Addr() != gids[0] || grh.DGID().Addr() != gids[1] ||
				grh.NextHeader() != ib.GRHNextHeader || string(dst.b[40:48]) != "datagram" {
				t.Errorf("flags %#x, GRH %x, %q", e.Flags, dst.b[:40], dst.b[40:48])
			}
			for group, mgid := range map[string]string{"239.1.2.3": "::ffff:239.1.2.3", "ff0e::77": "ff0e::77"} {
				if mode == RoCEv1 && group == "239.1.2.3" {
					mgid = "ff0e::ffff:239.1.2.3" // in bytes 10 and 11 ones, as in a mapped address
				} else if mode == RoCEv125 && group == "ff0e::77" {
					continue // the stations have IPv4 addresses
				}
				to := netip.MustParseAddr(group)
				y.check(y.c.AttachMulticast(bg, b.q.Handle, command.AddrFrom(to)))
				b.postRecv(2, dst.sge(0, 256))
				clear(dst.b)
				x.check(a.sendTo(to, 0xffffff, qkey, src.sge(0, 8)))
				wantSuccess(t, a.cq.next(), 0, ring.CQSend)
				wantSuccess(t, b.cq.next(), 2, ring.CQRecv)
				if grh := ib.GRH(dst.b[:ib.GRHLen]); grh.DGID().Addr() != netip.MustParseAddr(mgid).Unmap() || string(dst.b[40:48]) != "datagram" {
					t.Errorf("group %s: GRH %x, %q", group, dst.b[:40], dst.b[40:48])
				}
				y.check(y.c.DetachMulticast(bg, b.q.Handle, command.AddrFrom(to)))
			}
		})
	}
}

// TestRoCEv1_Unanswered: a connection to an address that nobody has fails when its time is up, and says so.
func TestRoCEv1_Unanswered(t *testing.T) {
	x, _ := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{RoCE: RoCEv1})
	q := x.idleQP()
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
	x.check(err)
	x.dial(command.CMConnect{ID: id, QP: q.q.Handle, Param: usualParam, Timeout: 50,
		Remote: command.EndpointFrom(netip.MustParseAddrPort("10.78.0.99:7000"))})
	x.event(command.EventUnreachable)
}

// TestRoCEModes_Differ: adapters of one host whose modes differ refuse to talk, with the reason.
func TestRoCEModes_Differ(t *testing.T) {
	for _, modes := range [][2]uint32{{RoCEv1, RoCEv2}, {RoCEv125, RoCEv2}, {RoCEv2, RoCEv1}} {
		t.Run(fmt.Sprint(modes), func(t *testing.T) {
			stations := stationsOf(0, false)
			links := overDatagrams(t, stations)
			h := newHost(t, Config{Seed: 1})
			var p [2]*program
			for i, l := range links {
				s := &stations[i]
				p[i] = newProgram(t, h, h.add(t, AdapterConfig{Link: l, Addr: s.Prefixes[0].Addr(), MAC: s.MAC, RoCE: modes[i]}))
			}
			q := p[0].idleQP()
			id, err := p[0].c.CMCreate(bg, command.CMCreate{Adapter: p[0].adapter, Space: command.TCP})
			p[0].check(err)
			_, err = p[0].c.CMConnect(bg, command.CMConnect{ID: id, QP: q.q.Handle, Param: usualParam,
				Remote: command.EndpointFrom(netip.AddrPortFrom(p[1].addr, 7000))})
			if !errors.Is(err, &command.Error{Code: command.HostUnreachable}) {
				t.Errorf("connected, %v", err)
			}
		})
	}
}
