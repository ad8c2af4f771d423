package ibport

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestReach: the address of a port of this process is known without a query; one that the resolver does not know is
// queried from the subnet administration, and then its path.
func TestReach(t *testing.T) {
	p, _ := newPort(t)
	far := ib.GID{0: 0xfe, 15: 2}
	beside := netip.MustParseAddr("10.0.0.3")
	p.near = func(ip netip.Addr) (ib.GID, bool) { return ib.GID{0: 0xfe, 15: 3}, ip == beside }
	p.SetResolver(func(_ netip.Addr, done func(clock.Time, ib.GID, error)) { done(0, ib.GID{}, sa.ErrTimeout) })
	ip := netip.MustParseAddr("10.0.0.2")
	if !p.Knows(beside) || p.Knows(ip) {
		t.Errorf("known: %v, %v", p.Knows(beside), p.Knows(ip))
	}
	var got mad.PathRecord
	p.Reach(0, ip, func(_ clock.Time, rec *mad.PathRecord, err error) {
		if err != nil {
			t.Fatal(err)
		}
		got = *rec
	})
	answer := func(m *mad.SA) (uint16, []byte) {
		if m.AttributeID == mad.AttrServiceRecord {
			r := mad.ServiceRecord{GID: far}
			return 0, r.Append(nil)
		}
		r, err := mad.ParsePathRecord(m.Data[:])
		if err != nil || r.DGID != far {
			t.Errorf("asked for %+v: %v", r, err)
		}
		r.DLID, r.MTU = 9, ib.MTU2048
		return 0, r.Append(nil)
	}
	if n := len(served(t, p, 0, answer)); n != 2 || got.DLID != 9 {
		t.Errorf("%d questions, path %+v", n, got)
	}
	if rec, ok := p.Known(0, ip); !ok || rec.DLID != 9 {
		t.Errorf("known: %+v, %v", rec, ok)
	}
	if _, ok := p.Known(0, beside); ok {
		t.Error("a path that was not asked for is known")
	}
}

// TestRoute: a route uses what is known of its destination, and an error names the wrong field.
func TestRoute(t *testing.T) {
	p, _ := newPort(t)
	ip, many := netip.MustParseAddr("fec0::9"), netip.MustParseAddr("239.1.2.3")
	p.paths[ib.GID(ip.As16())] = &path{known: true, until: 10, rec: mad.PathRecord{DLID: 9, SL: 3, HopLimit: 1, DGID: ib.GID(ip.As16())}}
	p.groups[p.MGID(many)] = &group{known: true, rec: mad.MCMemberRecord{MLID: 0xc002, SL: 5}}
	from := p.GIDs()[0]
	for _, c := range []struct {
		name string
		av   command.AddressVector
		dlid ib.LID
		sl   uint8
		code command.Code // 0: there is a route
	}{
		{"LID", command.AddressVector{LID: 7, SL: 15, Path: 1}, 7, 15, 0},
		{"address that is known", command.AddressVector{Addr: command.AddrFrom(ip)}, 9, 3, 0},
		{"address that nobody asked for", command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr("fec0::8"))}, 0, 0,
			command.HostUnreachable},
		{"neither", command.AddressVector{}, 0, 0, command.Invalid},
		{"group that was joined", command.AddressVector{Addr: command.AddrFrom(many)}, 0xc002, 5, 0},
		{"group that was not", command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr("239.1.2.4"))}, 0, 0, command.Invalid},
		{"multicast LID for a port", command.AddressVector{LID: 0xc002}, 0, 0, command.Invalid},
		{"GRH without a GID", command.AddressVector{LID: 7, Path: command.PathGlobal}, 0, 0, command.Invalid},
		{"SL", command.AddressVector{LID: 7, SL: 16}, 0, 0, command.Invalid},
		{"flow label", command.AddressVector{LID: 7, FlowLabel: 1 << 20}, 0, 0, command.Invalid},
	} {
		r, err := p.Route(1, from, c.av)
		var e *command.Error
		switch {
		case c.code != 0:
			if !errors.As(err, &e) || e.Code != c.code {
				t.Errorf("%s: %v, want code %d", c.name, err, c.code)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case r.IB.DLID != c.dlid || r.IB.SL != c.sl || r.IB.SGID.Addr() != from || r.Src != frame.LIDAddr(4|ib.LID(c.av.Path&1)):
			t.Errorf("%s: wrong LIDs, service level or GID in %+v", c.name, r)
		}
	}
}
