package service

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// join makes interfaces on the ports members of a team.
func (b *bed) join(t *Team, ports ...int) (list []*Interface) {
	b.t.Helper()
	for k, port := range ports {
		i, err := b.ports[port].Add(Config{}, t.Member(k), nil)
		if err != nil {
			b.t.Fatal(err)
		}
		t.Member(k).Join(i)
		list = append(list, i)
	}
	return list
}

// carried is what the owner of a team is told.
type carried struct {
	mu    sync.Mutex
	by    string
	addrs []netip.Prefix
	news  []carrier.News
}

func (c *carried) carries(now, _ string, addrs []netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by, c.addrs = now, addrs
}

func (c *carried) changed(_ string, n carrier.News) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news = append(c.news, n)
}

func (c *carried) is(by string, addrs ...netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by == by && slices.Equal(c.addrs, addrs)
}

// TestTeam: packets pass between a team of two ports and a third port, in both directions and to a group, while a port of the team fails
// and comes back, is disabled, and loses its interface; without members' links the system's interface has no carrier. The subnet manager is
// at the third port.
func TestTeam(t *testing.T) {
	b := newBed(t, 3, subnet.Config{})
	s, told := &system{got: make(chan []byte, 1024)}, &carried{}
	team, err := NewTeam(TeamConfig{Names: []string{"0", "1"}, Primary: "0", Changed: told.changed, Carries: told.carries}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	own := netip.MustParsePrefix("10.0.0.1/24")
	team.Set([]netip.Prefix{own}, nil)
	members := b.join(team, 1, 2)
	y, sy := b.add(0, ipoib.Config{}, "10.0.0.2/24")
	b.up(append(members, y)...)
	size := 0
	pass := func(active int) {
		t.Helper()
		b.until("another member carries", func() bool {
			_, carrier, _ := s.state()
			return carrier && team.Status().Active == active && told.is(strconv.Itoa(active), own)
		})
		for _, x := range []struct {
			send     func(packet []byte)
			src, dst string
			to       *system
		}{{team.send, "10.0.0.1", "10.0.0.2", sy}, {y.sendOne, "10.0.0.2", "10.0.0.1", s}, {y.sendOne, "10.0.0.2", "10.0.0.255", s}} {
			size++ // no packet is like another
			p := udp(x.src, x.dst, size)
			b.until("a packet arrives", func() bool {
				x.send(p) // the first ones may come before the announcement
				return x.to.has(p)
			})
		}
	}
	pass(0)
	b.plugs[1].SetPlugged(false)
	pass(1)
	b.plugs[1].SetPlugged(true)
	pass(0)
	team.Member(0).SetDisabled(true)
	pass(1)
	team.Member(0).SetDisabled(false)
	pass(0)
	team.Member(0).Leave()
	members[0].Close()
	pass(1)
	b.plugs[2].SetPlugged(false)
	b.until("no carrier", func() bool { _, carrier, _ := s.state(); return !carrier && told.is("", own) })
	team.send(udp("10.0.0.1", "10.0.0.2", 1))
	if st := team.Status(); st.Lost == 0 || st.Counters.FailOvers < 3 || st.Counters.FailBacks < 2 {
		t.Errorf("status %+v", st)
	}
	want := carrier.News{Member: 1, Status: carrier.Connected, Role: carrier.Active}
	told.mu.Lock()
	defer told.mu.Unlock()
	if !slices.Contains(told.news, want) {
		t.Errorf("news %v, want %v among them", told.news, want)
	}
}

// send gives a packet of the system to a team.
func (t *Team) send(packet []byte) {
	t.take(offload.Header{}, packet)
	t.idle()
}

// sendOne gives a packet of the system to an interface.
func (i *Interface) sendOne(packet []byte) { i.Send([][]byte{packet}) }

// has reports whether a packet is among those that have arrived.
func (s *system) has(want []byte) bool {
	for {
		select {
		case p := <-s.got:
			if bytes.Equal(p, want) {
				return true
			}
		default:
			return false
		}
	}
}
