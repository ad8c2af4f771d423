package device

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	engine "github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// bundled are two hosts with a team of two members each, between which there are two lines, or, at a switch that knows nothing of it, the
// first alone. A line is lost at both ends.
type bundled struct {
	dir   string // of the lines' sockets
	hosts [2]*Host
	teams [2]*team.Link // the second is nil at a switch
	lines [2][]*plug    // by member
}

// atSwitch are ends at a switch in memory: two members of one host, and one end of the other.
func (b *bundled) atSwitch(t testing.TB, kind engine.Type) (one, other link.Link) {
	s, err := vswitch.New(bridge.Config{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(h *Host) link.Link {
		p, err := s.Open(vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1, MTU: 4200}, Notify: h.Wake})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range b.lines {
		b.lines[i] = []*plug{{Link: open(b.hosts[0])}}
	}
	return b.team(t, 0, kind), open(b.hosts[1])
}

// atLines are ends at two lines from member to member, which let LACP pass.
func (b *bundled) atLines(t testing.TB, kind engine.Type) (one, other link.Link) {
	for i := range b.lines {
		path := [2]string{filepath.Join(b.dir, "a"+itoa(uint32(i))), filepath.Join(b.dir, "b"+itoa(uint32(i)))}
		for e, h := range b.hosts {
			l, err := datagram.Open(datagram.Config{Local: path[e], Remote: path[1-e], MTU: 4200, Patience: await.Limit, Notify: h.Wake})
			if err != nil {
				t.Fatal(err)
			}
			b.lines[i] = append(b.lines[i], &plug{Link: l})
		}
	}
	return b.team(t, 0, kind), b.team(t, 1, kind)
}

// team makes one of an end's members.
func (b *bundled) team(t testing.TB, e int, kind engine.Type) link.Link {
	cfg := team.Config{Team: engine.Config{Type: kind, Fast: kind == engine.LACP}, Notify: b.hosts[e].Wake}
	for i, l := range b.lines {
		cfg.Links = append(cfg.Links, l[e])
		cfg.Team.Members = append(cfg.Team.Members, engine.Member{MAC: [6]byte{2, 0, 0, byte(e), 8, byte(i)}})
	}
	l, err := team.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.teams[e] = l
	return l
}

// lose takes a line away, or gives it back, and waits until both ends agree on what there is.
func (b *bundled) lose(t testing.TB, i int, out bool) {
	t.Helper()
	for _, p := range b.lines[i] {
		p.out.Store(out)
	}
	for e, l := range b.teams {
		if l == nil {
			continue
		}
		b.hosts[e].Wake()
		if l.Status().Type != engine.LACP {
			continue
		}
		await.Eventually(t, "LACP agrees", func() bool { return (l.Status().Members[i].Role == engine.Active) != out })
	}
}

// newBundled returns hosts that have nothing yet.
func newBundled(t *testing.T) *bundled {
	dir, err := os.MkdirTemp("", "lines")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // after the hosts have closed them
	return &bundled{dir: dir, hosts: [2]*Host{newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})}}
}

// traffic puts an adapter on each end, with virtual functions, and returns what has RDMA of all of them, and frames of their hosts, go on.
func (b *bundled) traffic(t *testing.T, one, other link.Link) (goOn func()) {
	add := func(h *Host, last byte, l link.Link) *program {
		return newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.AddrFrom4([4]byte{10, 79, 0, last}),
			MAC: [6]byte{2, 0, 0, 0, 9, last}, Networks: []netip.Prefix{netip.MustParsePrefix("10.79.0.0/24")}, Link: l, Path: PathWire}))
	}
	near, far := add(b.hosts[0], 1, one), add(b.hosts[1], 3, other)
	for i := range b.lines {
		b.lose(t, i, false)
	}
	_, red := vf(t, b.hosts[0], 20, nil)
	inside, hosted := newMachine(t, b.dir, "inside")
	outside, hostedToo := newMachine(t, b.dir, "outside")
	_, blue := vf(t, b.hosts[0], 21, hosted)
	_, remote := vf(t, b.hosts[1], 30, hostedToo)
	pairs := []*connected{connect(near.idleQP(), far.idleQP()), connect(red.idleQP(), far.idleQP()),
		connect(blue.idleQP(), remote.idleQP()), connect(red.idleQP(), blue.idleQP())}
	return func() {
		t.Helper()
		for _, c := range pairs {
			exchange(t, c, 50000)
		}
		inside.say(t, outside)
		outside.say(t, inside)
	}
}

// TestTeam_Functions: RDMA of an adapter and of its virtual functions, and frames of their hosts, go on while a member of their team fails,
// comes back, and the other fails, with every type; all members have carried something in the end.
func TestTeam_Functions(t *testing.T) {
	t.Parallel()
	for kind := engine.AFT; kind <= engine.SLA; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := newBundled(t)
			open := b.atSwitch
			if kind == engine.LACP || kind == engine.SLA {
				open = b.atLines
			}
			one, other := open(t, kind)
			goOn := b.traffic(t, one, other)
			goOn()
			for i := range b.lines {
				b.lose(t, i, true)
				goOn()
				if i == 0 {
					b.lose(t, i, false)
					goOn()
				}
			}
			for e, l := range b.teams {
				if l == nil {
					continue
				}
				for i, m := range l.Status().Members {
					if m.SentFrames < 3 || m.ReceivedFrames < 3 {
						t.Errorf("member %d of end %d has carried %+v", i, e, m.Traffic)
					}
				}
			}
		})
	}
}
