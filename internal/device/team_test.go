package device

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	"github.com/softvpi/softvpi/internal/ring"
	engine "github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// plug is a port of a switch in memory that can be pulled.
type plug struct {
	link.Link
	out atomic.Bool
}

func (p *plug) Capabilities() link.Capabilities {
	c := p.Link.Capabilities()
	c.Carrier = p
	return c
}

func (p *plug) WireState() link.State { return link.State{Up: !p.out.Load(), Speed: 10e9} }

func (p *plug) Send(frames []frame.Out) (int, error) {
	if p.out.Load() {
		return len(frames), nil
	}
	return p.Link.Send(frames)
}

func (p *plug) Receive(in []frame.In) (int, error) {
	n, err := p.Link.Receive(in)
	if p.out.Load() {
		n = 0
	}
	return n, err
}

// teamed are two adapters at a switch in memory, the first by a team of two plugs.
func teamed(t *testing.T, kind engine.Type) (n network, plugs *[2]*plug) {
	plugs = &[2]*plug{}
	return network{"team", func(t testing.TB, cfg AdapterConfig) (a, b *program) {
		s, err := vswitch.New(bridge.Config{})
		if err != nil {
			t.Fatal(err)
		}
		open := func(h *Host) *vswitch.Port {
			p, err := s.Open(vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1, MTU: 4200}, Notify: h.Wake})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		stations := stationsOf(0, false)
		add := func(h *Host, i int, l link.Link) *program {
			c, s := cfg, &stations[i]
			c.Link, c.Addr, c.MAC, c.Networks = l, s.Prefixes[0].Addr(), s.MAC, []netip.Prefix{s.Prefixes[0]}
			return newProgram(t, h, h.add(t, c))
		}
		h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
		members := team.Config{Team: engine.Config{Type: kind}, Notify: h.Wake}
		for i := range plugs {
			plugs[i] = &plug{Link: open(h)}
			members.Links = append(members.Links, plugs[i])
			members.Team.Members = append(members.Team.Members, engine.Member{MAC: [6]byte{2, 0, 0, 0, 8, byte(i)}})
		}
		l, err := team.Open(members)
		if err != nil {
			t.Fatal(err)
		}
		return add(h, 0, l), add(g, 1, open(g))
	}}, plugs
}

// TestTeam: every operation of two adapters, one of which is on a team; and while its members fail one after the other, its queue pair
// goes on without an error, and what it writes is what arrives.
func TestTeam(t *testing.T) {
	for _, kind := range []engine.Type{engine.AFT, engine.SLB, engine.ALB} {
		t.Run(kind.String(), func(t *testing.T) {
			n, plugs := teamed(t, kind)
			c := pairs(t, n, AdapterConfig{})
			operations(t, c)
			const size = 100_000
			src, dst := c.a.p.buffer(size), c.b.p.buffer(size)
			for round := range uint64(12) {
				plugs[round/3%2].out.Store(round%3 == 1)
				c.a.p.host.Wake()
				fill(src.b, round)
				c.a.post(ring.SendWR{ID: round, Op: ring.OpWrite, Flags: ring.Signaled, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey,
					NumSGE: 1, SGE: [ring.MaxSGE]ring.SGE{src.sge(0, size)}})
				wantSuccess(t, c.a.cq.next(), round, ring.CQWrite)
				if !bytes.Equal(src.b, dst.b) {
					t.Fatalf("round %d: other bytes have arrived", round)
				}
				fill(dst.b, ^round)
				c.b.post(ring.SendWR{ID: round, Op: ring.OpWrite, Flags: ring.Signaled, RemoteAddr: src.addr(0), RKey: src.mem.RKey,
					NumSGE: 1, SGE: [ring.MaxSGE]ring.SGE{dst.sge(0, size)}})
				wantSuccess(t, c.b.cq.next(), round, ring.CQWrite)
				if !bytes.Equal(src.b, dst.b) {
					t.Fatalf("round %d: other bytes have come back", round)
				}
			}
		})
	}
}

// TestTeam_Down: a port on a team is down while all members are, and up again with one.
func TestTeam_Down(t *testing.T) {
	n, plugs := teamed(t, engine.AFT)
	c := pairs(t, n, AdapterConfig{})
	up := func() bool {
		infos, err := c.a.p.c.Adapters(bg)
		c.a.p.check(err)
		return infos[c.a.p.adapter].Up != 0
	}
	await.Eventually(t, "the port is up", up)
	for i := range plugs {
		plugs[i].out.Store(true)
	}
	c.a.p.host.Wake()
	await.Eventually(t, "the port is down", func() bool { return !up() })
	plugs[1].out.Store(false)
	c.a.p.host.Wake()
	await.Eventually(t, "the port is up again", up)
}
