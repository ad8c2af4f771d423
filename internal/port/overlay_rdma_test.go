package port

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// tenantHost is a port with RDMA functions of tenants, which have the same addresses, and a host's provider address.
type tenantHost struct {
	p        Port
	w        Wire
	overlay  *Overlay
	stations []*station // of each tenant one
}

var tenantSubnets = []uint32{5001, 5002, 5003}

// newTenantHosts returns two, which know each other.
func newTenantHosts(t *testing.T, kind tunnel.Kind) (hosts [2]*tenantHost) {
	t.Helper()
	hostAt := func(i int) (netip.Addr, eth.MAC) {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), eth.MAC{2, 0xff, 0, 0, 0, byte(i + 1)}
	}
	var x overlay.Tables
	for i := range hosts {
		for k, subnet := range tenantSubnets {
			at, _ := hostAt(i)
			x.Records = append(x.Records, overlay.Record{Subnet: subnet, Customer: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}),
				MAC: eth.MAC{2, 0, 0, 0, 0, byte(16*i + k + 32)}, Provider: at})
		}
	}
	for i := range hosts {
		h, sw := &tenantHost{}, eswitch.New(eswitch.Config{})
		h.w.Embed(sw)
		own, mac := hostAt(i)
		y := x
		y.Addresses = []overlay.ProviderAddress{{Address: netip.PrefixFrom(own, 24), Kind: kind}}
		e := overlay.New(overlay.Config{MAC: mac, MTU: 1500})
		at := eswitch.VPort(eswitch.MostVPorts - 1)
		can(t, e.SetTables(y), sw.Set(at, eswitch.Function{MACs: []eth.MAC{mac}, VLAN: eswitch.AnyVLAN(), Link: eswitch.LinkUp}))
		h.overlay = h.p.AttachOverlay(e, &h.w, Station{MAC: mac, Kind: Ethernet, At: at})
		for k, subnet := range tenantSubnets {
			s := stationOn(t, &h.p, &h.w, byte(10+i), 0)
			s.s.MAC, s.s.At = eth.MAC{2, 0, 0, 0, 0, byte(16*i + k + 32)}, eswitch.VF(k)
			can(t, sw.Set(s.s.At, eswitch.Function{MACs: []eth.MAC{s.s.MAC}, Link: eswitch.LinkUp}),
				e.SetTenant(overlay.Port(s.s.At), subnet, s.s.MAC))
			h.stations = append(h.stations, s)
		}
		hosts[i] = h
	}
	for i, h := range hosts {
		own, mac := hostAt(i)
		far, farMAC := hostAt(1 - i)
		head := eth.Ethernet{Dst: mac, Src: farMAC, Type: eth.TypeARP}
		answer := eth.ARP{Operation: eth.ARPReply, SenderMAC: farMAC, SenderIP: far, TargetMAC: mac, TargetIP: own}
		h.stations[0].out[0] = many(1, h.stations[0].to(hosts[1-i].stations[0])) // has it ask
		h.transmit(func([]byte) {})
		h.p.Receive(0, &h.w, []frame.In{{Data: answer.Append(head.Append(nil)), Raw: true}})
		h.transmit(func([]byte) {})
	}
	return hosts
}

func can(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// transmit has everybody at the port send, and does something with what leaves.
func (h *tenantHost) transmit(leaves func(b []byte)) {
	var out [8]frame.Out
	for n := h.p.Transmit(0, out[:]); n > 0; n = h.p.Transmit(0, out[:]) {
		for i := range out[:n] {
			if o := &out[i]; !o.Inside {
				b := append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...)
				leaves(append(append(b, o.Payload...), o.Tail[:o.TailLen]...))
			}
		}
	}
	h.p.Advance(0)
}

// TestOverlay_TenantsRDMA: of tenants with the same addresses, whatever they send, each gets what its own peer, or itself, has sent, whole
// and with a right ICRC, and nothing else; on the wire there are tunnels only.
func TestOverlay_TenantsRDMA(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom([]tunnel.Kind{tunnel.VXLAN, tunnel.NVGRE}).Draw(r, "kind")
		hosts := newTenantHosts(t, kind)
		want := map[*station]int{}
		for range rapid.IntRange(1, 12).Draw(r, "turns") {
			i, k := rapid.IntRange(0, 1).Draw(r, "host"), rapid.IntRange(0, len(tenantSubnets)-1).Draw(r, "tenant")
			from, to := hosts[i].stations[k], hosts[rapid.IntRange(0, 1).Draw(r, "to host")].stations[k]
			n, route := rapid.IntRange(1, 9).Draw(r, "packets"), from.to(to)
			if wrong := rapid.IntRange(0, len(tenantSubnets)-1).Draw(r, "to tenant"); wrong != k && rapid.Bool().Draw(r, "hostile") {
				route.DstMAC = hosts[1-i].stations[wrong].s.MAC // a MAC of another subnet
			} else {
				want[to] += n
			}
			from.out[0] = append(from.out[0], many(n, route)...)
			if rapid.Bool().Draw(r, "now") {
				exchange(r, hosts, kind)
			}
		}
		exchange(r, hosts, kind)
		for i, h := range hosts {
			for k, s := range h.stations {
				if len(s.got) != want[s] {
					r.Errorf("tenant %d at host %d got %d packets, want %d", k, i, len(s.got), want[s])
				}
				for _, got := range s.got {
					if got != "data" {
						r.Errorf("tenant %d at host %d got %q", k, i, got)
					}
				}
				if c := s.e.Counters(); c.ICRCErrors+c.NotForUs+c.Malformed != 0 {
					r.Errorf("tenant %d at host %d refuses: %+v", k, i, c)
				}
			}
		}
	})
}

// exchange carries everything to the other host.
func exchange(r *rapid.T, hosts [2]*tenantHost, kind tunnel.Kind) {
	for i, h := range hosts {
		o := hosts[1-i]
		h.transmit(func(b []byte) {
			var e eth.Headers
			var f tunnel.Frame
			if !e.Parse(b) || !f.Find(&e, b, tunnel.Recognition{VXLANPort: tunnel.Port, NVGRE: true}) || f.Kind != kind {
				r.Fatalf("on the wire: % x", b)
			}
			o.p.Receive(0, &o.w, []frame.In{{Data: b, Raw: true}})
		})
	}
}

// TestOverlay_Allocates: an RDMA packet of a tenant needs no new memory on its way out.
func TestOverlay_Allocates(t *testing.T) {
	hosts := newTenantHosts(t, tunnel.VXLAN)
	h, route := hosts[0], hosts[0].stations[0].to(hosts[1].stations[0])
	list := many(4, route)
	var out [8]frame.Out
	if n := testing.AllocsPerRun(100, func() {
		h.stations[0].out[0] = list
		if h.p.Transmit(0, out[:]) != 4 || out[0].Inside {
			t.Fatal("the packets do not leave")
		}
	}); n > 4 { // the test's own: each packet's payload
		t.Errorf("%v allocations for 4 packets", n)
	}
}
