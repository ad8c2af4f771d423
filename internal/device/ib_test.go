package device

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/mad"
)

// ibFabric is a running star of hosts around a switch, with a subnet manager at host 0.
type ibFabric struct {
	t testing.TB
	*live.Rack
	stop func() // ends the subnet manager
}

func newIBFabric(t testing.TB, hosts int, cfg subnet.Config) *ibFabric {
	t.Helper()
	top, err := topology.Star(hosts, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR})
	if err != nil {
		t.Fatal(err)
	}
	guid := uint64(0x5f00)
	f := &ibFabric{t: t, Rack: live.New(fabric.New(top, func() uint64 { guid++; return guid }), live.Options{})}
	t.Cleanup(func() { f.Close() })
	f.manage(cfg)
	return f
}

// manage runs a subnet manager until stop is called or the test ends.
func (f *ibFabric) manage(cfg subnet.Config) {
	if cfg.Limits == nil { // switches keep packets however long an adapter has no processor
		limits := subnet.DefaultLimits()
		limits.PacketLife, limits.HOQLife, limits.LeafHOQLife = 20, 20, 20
		cfg.Limits = &limits
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Manage(ctx, fabric.Place{Node: 0, Port: 1}, service.Config{Subnet: cfg}) }()
	over := false
	f.stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("the subnet manager ended with %v", err)
		}
	}
	f.t.Cleanup(f.stop)
}

// add plugs an adapter of h in at a host of the fabric and waits until its port is active.
func (f *ibFabric) add(h *Host, host int, cfg AdapterConfig) uint32 {
	f.t.Helper()
	p, err := f.Plug(fabric.Place{Node: host, Port: 1}, h.Wake)
	if err != nil {
		f.t.Fatal(err)
	}
	cfg.Link = p
	i := h.add(f.t, cfg)
	f.until(h, func() bool { return h.adapters[i].up() && h.adapters[i].ib.Settings().LID != 0 })
	f.registered(h, i)
	return i
}

// registered waits until the subnet administration knows the addresses of an adapter: it registers them after its port is active, and
// whoever asks for one before is told that nobody has it.
func (f *ibFabric) registered(h *Host, adapter uint32) {
	f.t.Helper()
	h.lock()
	ips := slices.Clone(h.adapters[adapter].ib.Addresses())
	h.unlock()
	for _, ip := range ips {
		await.Eventually(f.t, fmt.Sprint("the subnet administration knows ", ip), func() bool {
			known := make(chan bool, 1)
			h.lock()
			h.adapters[adapter].ib.Ask(h.now(), sa.Find(ip), func(_ clock.Time, answer *sa.Answer) {
				var s *sa.StatusError
				known <- answer.Err == nil || errors.As(answer.Err, &s) && s.Status == mad.SATooManyRecords // another has it, too
			})
			h.finish()
			return <-known
		})
	}
}

// until waits until so reports true; so is called with the host's lock held.
func (f *ibFabric) until(h *Host, so func() bool) {
	f.t.Helper()
	await.Eventually(f.t, "the state that was waited for has come", func() bool {
		h.lock()
		defer h.unlock()
		return so()
	})
}

// overInfiniBand makes two adapters on a fabric, on one host or on two.
func overInfiniBand(oneHost bool) func(testing.TB, AdapterConfig) (a, b *program) {
	return func(t testing.TB, cfg AdapterConfig) (a, b *program) {
		h := newHost(t, Config{Seed: 1})
		g := h
		if !oneHost {
			g = newHost(t, Config{Seed: 2})
		}
		f := newIBFabric(t, 2, subnet.Config{})
		ca, cb := cfg, cfg
		ca.Addr, cb.Addr = loopback.Addr(), loopback.Addr()
		i, j := f.add(h, 0, ca), f.add(g, 1, cb)
		return newProgram(t, h, i), newProgram(t, g, j)
	}
}

func init() {
	networks = append(networks, network{"infiniband", overInfiniBand(false)}, network{"infiniband one host", overInfiniBand(true)})
}

// TestInfiniBandPort: an InfiniBand adapter reports the state, MTU and GID that the subnet manager gave its port.
func TestInfiniBandPort(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	f := newIBFabric(t, 2, subnet.Config{})
	i := f.add(h, 1, AdapterConfig{})
	p := newProgram(t, h, i)
	infos, err := p.c.Adapters(bg)
	p.check(err)
	gids, err := p.c.GIDs(bg, i)
	p.check(err)
	n := infos[i]
	if n.RoCE != InfiniBand || n.ActiveMTU != 4096 || n.Up != 1 || string(n.Name[:12]) != "InfiniBand 1" || n.GUID == 0 {
		t.Errorf("the adapter is %+v, want it up on InfiniBand with MTU 4096", n)
	}
	if len(gids) != 1 || gids[0].RoCE != InfiniBand || gids[0].GID != n.Addr {
		t.Errorf("GIDs %+v, the adapter's address is %v", gids, netip.AddrFrom16(n.Addr))
	}
}
