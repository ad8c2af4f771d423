package ibport

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const guid = 0x5f0001

// cable is a link whose port the test sets.
type cable struct {
	link.InfiniBand
	port    link.Port
	changes uint64
}

func (c *cable) Changes() uint64 { return c.changes }
func (c *cable) Port() link.Port { return c.port }

// set changes the port and makes p take the change.
func (c *cable) set(p *Port, now clock.Time, change func(*link.Port)) Changes {
	change(&c.port)
	c.changes++
	is := p.Take()
	p.Resume(now, is)
	return is
}

func newPort(t *testing.T, ips ...netip.Addr) (*Port, *cable) {
	t.Helper()
	c := &cable{changes: 1, port: link.Port{State: mad.PortActive, LID: 4, LMC: 1, SMLID: 1, Prefix: 0xfec0 << 48, GUIDs: []uint64{guid},
		PKeys: []ib.PKey{0x7fff, 0x8001}}}
	p, err := New(Config{Link: c, Addresses: ips, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Changed() {
		t.Error("a new port does not count as changed")
	}
	is := p.Take()
	if !is.PKeys || p.Changed() {
		t.Errorf("taken: %+v", is)
	}
	p.Resume(0, is)
	return p, c
}

// served answers each of the port's requests by answer and returns their methods.
func served(t *testing.T, p *Port, now clock.Time, answer func(m *mad.SA) (status uint16, data []byte)) (methods []uint8) {
	t.Helper()
	p.Advance(now)
	for list := p.Requests(); len(list) > 0; list = p.Requests() {
		var back [][]byte
		for i := range list {
			m, err := mad.ParseSA(list[i].MAD[:])
			if err != nil {
				t.Fatal(err)
			}
			methods = append(methods, m.Method)
			status, data := answer(&m)
			m.Method, m.Status = mad.MethodGetResp, status
			clear(m.Data[:])
			copy(m.Data[:], data)
			back = append(back, m.Append(nil))
		}
		for _, b := range back {
			p.Receive(now, b)
		}
		p.Deliver(now)
	}
	return methods
}

func same(m *mad.SA) (uint16, []byte) { return 0, slices.Clone(m.Data[:]) }

// TestPathsAreAskedForOnce: one query for an address, and one for a path, serves all who want it. The answers are
// valid for their time, and until the subnet manager changes the port's LID.
func TestPathsAreAskedForOnce(t *testing.T) {
	p, c := newPort(t)
	ip, to := netip.MustParseAddr("10.0.0.2"), ib.GID{0: 0xfe, 15: 2}
	var found []ib.GID
	note := func(_ clock.Time, gid ib.GID, err error) {
		if err != nil {
			t.Error(err)
		}
		found = append(found, gid)
	}
	var answers []func(now clock.Time, gid ib.GID, err error)
	p.SetResolver(func(_ netip.Addr, done func(now clock.Time, gid ib.GID, err error)) { answers = append(answers, done) })
	p.Find(0, ip, note)
	p.Find(0, ip, note)
	if len(answers) != 1 || p.Knows(ip) {
		t.Fatalf("%d queries, want 1", len(answers))
	}
	answers[0](0, to, nil)
	p.Find(1, ip, note)
	if len(answers) != 1 || !slices.Equal(found, []ib.GID{to, to, to}) || !p.Knows(ip) {
		t.Fatalf("found %v", found)
	}
	lids := func(now clock.Time) (n int) {
		for range 2 {
			p.pathTo(now, to, func(_ clock.Time, r *mad.PathRecord, err error) {
				if err != nil || r.DLID != 9 {
					t.Error("want a route to LID 9, got ", r, err)
				}
			})
		}
		return len(served(t, p, now, func(m *mad.SA) (uint16, []byte) {
			r, err := mad.ParsePathRecord(m.Data[:])
			if err != nil || r.SGID != p.GID() || r.DGID != to {
				t.Errorf("asked for %+v: %v", r, err)
			}
			r.DLID, r.MTU = 9, ib.MTU2048
			return 0, r.Append(nil)
		}))
	}
	if n := lids(0); n != 1 {
		t.Errorf("%d queries, want 1", n)
	}
	if r, ok := p.Known(1, ip); !ok || r.DLID != 9 {
		t.Errorf("known: %v %v", r, ok)
	}
	if _, ok := p.Known(clock.Time(0).Add(nameLife), ip); ok {
		t.Error("a name is still known after its time")
	}
	if n := lids(clock.Time(0).Add(pathLife - 1)); n != 0 {
		t.Errorf("a path that is known is asked for %d times", n)
	}
	if n := lids(clock.Time(0).Add(pathLife)); n != 1 {
		t.Errorf("a path that is old is asked for %d times", n)
	}
	if is := c.set(p, 0, func(l *link.Port) { l.LID = 8 }); !is.LID || !is.Routes || is.Manager || is.PKeys {
		t.Errorf("moved: %+v", is)
	}
	if _, ok := p.knownTo(0, to); ok || !p.Has(9) || p.Has(4) {
		t.Error("a path from the former LID is still known")
	}
}

// TestNobodyKnows: a refusal ends a query, and the next one asks again. An IPv6 address that no port offers may be a
// GID.
func TestNobodyKnows(t *testing.T) {
	p, _ := newPort(t)
	none := func(*mad.SA) (uint16, []byte) { return mad.SANoRecords, nil }
	for range 2 {
		var got error
		p.Find(0, netip.MustParseAddr("10.0.0.2"), func(_ clock.Time, _ ib.GID, err error) { got = err })
		served(t, p, 0, none)
		var status *sa.StatusError
		if !errors.As(got, &status) || status.Status != mad.SANoRecords {
			t.Errorf("%v, want no records", got)
		}
	}
	six := netip.MustParseAddr("2001:db8::7")
	var got ib.GID
	p.Find(0, six, func(_ clock.Time, gid ib.GID, _ error) { got = gid })
	served(t, p, 0, none)
	if got.Addr() != six {
		t.Errorf("the address is %v, want the IPv6 one", got.Addr())
	}
}

// TestGroups: a group is joined once for all who use it, left with the last of them, and joined again when the subnet
// manager asks for it.
func TestGroups(t *testing.T) {
	p, c := newPort(t)
	mgid := p.MGID(netip.MustParseAddr("239.1.2.3"))
	if want := (ib.GID{0xff, 0x12, 0x40, 0x01, 0xff, 0xff, 12: 15, 13: 1, 14: 2, 15: 3}); mgid != want {
		t.Errorf("%x, want %x", mgid, want)
	}
	member := func(m *mad.SA) (uint16, []byte) {
		r, err := mad.ParseMCMemberRecord(m.Data[:])
		if err != nil || r.MGID != mgid || r.PortGID != p.GID() {
			t.Errorf("the request is %+v, %v; want the group's and the port's GIDs", r, err)
		}
		r.MLID = 0xc001
		return 0, r.Append(nil)
	}
	joined := 0
	for range 3 {
		p.Join(0, mgid, mad.JoinFull, func(_ clock.Time, r *mad.MCMemberRecord, err error) {
			if err == nil && r.MLID == 0xc001 {
				joined++
			}
		})
	}
	if rec, asked := p.group(mgid); rec != nil || !asked {
		t.Error("the group counts as joined before the answer")
	}
	if m := served(t, p, 0, member); joined != 3 || !slices.Equal(m, []uint8{mad.MethodSet}) {
		t.Errorf("%d joined by %v", joined, m)
	}
	if is := c.set(p, 0, func(l *link.Port) { l.Reregister++ }); !is.Reregister {
		t.Errorf("%+v, want that the port registers again", is)
	}
	if m := served(t, p, 0, member); !slices.Equal(m, []uint8{mad.MethodSet}) {
		t.Errorf("registered again by %v", m)
	}
	p.Leave(0, mgid)
	p.Leave(0, mgid)
	if m := served(t, p, 0, member); len(m) != 0 {
		t.Errorf("the group was left by %v while one still uses it", m)
	}
	p.Leave(0, mgid)
	if m := served(t, p, 0, member); !slices.Equal(m, []uint8{mad.MethodDelete}) {
		t.Errorf("left by %v", m)
	}
	p.Join(0, mgid, mad.JoinFull, func(_ clock.Time, _ *mad.MCMemberRecord, err error) {
		if err == nil {
			t.Error("a refused join gave no error")
		}
	})
	served(t, p, 0, func(*mad.SA) (uint16, []byte) { return mad.SARequestInvalid, nil })
	if _, asked := p.group(mgid); asked {
		t.Error("a group that was refused is still known")
	}
}

// TestOffers: addresses are registered at once and again in time, withdrawn when the adapter departs, and not
// registered while the port is down.
func TestOffers(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.1")
	p, c := newPort(t, ip, netip.MustParseAddr("fec0::5f:1"))
	if !slices.Equal(p.Addresses(), []netip.Addr{ip}) || !p.Owns(ip) || p.Source(netip.MustParseAddr("10.0.0.2"), netip.Addr{}) != ip {
		t.Errorf("addresses %v", p.Addresses())
	}
	at := clock.Time(0)
	for range 3 {
		if m := served(t, p, at, same); !slices.Equal(m, []uint8{mad.MethodSet}) {
			t.Fatalf("at %v: %v", at, m)
		}
		if m := served(t, p, at, same); len(m) != 0 || p.Deadline() != at.Add(offerEvery) {
			t.Fatalf("at %v: %v; the next is due at %v", at, m, p.Deadline())
		}
		at = p.Deadline()
	}
	c.set(p, at, func(l *link.Port) { l.State = mad.PortDown })
	p.Rest()
	if m := served(t, p, at, same); len(m) != 0 || p.Deadline() != clock.Never {
		t.Errorf("a port that is down registers addresses: %v", m)
	}
	c.set(p, at, func(l *link.Port) { l.State = mad.PortActive })
	served(t, p, at, same)
	p.Depart(at)
	if m := served(t, p, at, same); !slices.Equal(m, []uint8{mad.MethodDelete}) || p.Deadline() != clock.Never {
		t.Errorf("%v when it departs; due at %v", m, p.Deadline())
	}
}

// TestWaits: a wait that takes too long ends once, in the order of the deadlines; one that was ended before does not.
func TestWaits(t *testing.T) {
	p, _ := newPort(t)
	p.Rest()
	var over []int
	var all []*Wait
	for _, n := range []int{3, 1, 2} {
		all = append(all, p.Await(clock.Time(n), func(clock.Time) { over = append(over, n) }))
	}
	p.End(all[2])
	p.End(all[2])
	if p.Deadline() != 1 || p.Advance(0) || !p.Advance(5) || !slices.Equal(over, []int{1, 3}) || p.Deadline() != clock.Never {
		t.Errorf("the waits %v ended, want 1 and 3", over)
	}
	p.End(all[0])
}

// TestKeys: the row and membership for a P_Key: the key itself, the other membership of it, or none (IBA 10.9.3).
func TestKeys(t *testing.T) {
	p, c := newPort(t)
	for _, k := range []struct {
		key, want ib.PKey
		row       uint32
	}{{0xffff, 0x7fff, 0}, {0x7fff, 0x7fff, 0}, {0x8001, 0x8001, 1}, {0x0001, 0x8001, 1}, {0x8002, 0, 0}, {0, 0, 0}} {
		if got, row := p.MemberKey(k.key), KeyIndex(p.Keys(), k.key); got != k.want || row != k.row {
			t.Errorf("%#x: %#x in row %d, want %#x in %d", k.key, got, row, k.want, k.row)
		}
	}
	if is := c.set(p, 0, func(l *link.Port) { l.PKeys = nil }); !is.PKeys || !slices.Equal(p.Keys(), []ib.PKey{ib.PKeyDefault}) {
		t.Errorf("%+v: keys %v", is, p.Keys())
	}
	if time.Duration(offerEvery) >= offerLease*time.Second {
		t.Error("a registration expires before it is renewed")
	}
}
