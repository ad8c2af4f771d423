package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestTables_Check: what tables cannot have is refused with its field, and nothing changes.
func TestTables_Check(t *testing.T) {
	net := netip.MustParsePrefix
	for _, c := range []struct {
		field  string
		change func(*Tables)
	}{
		{"vsid", func(t *Tables) { t.Records[0].Subnet = 4095 }},
		{"vsid", func(t *Tables) { t.Records[0].Subnet = 1<<24 - 1 }},
		{"customer address", func(t *Tables) { t.Records[0].Customer = addr("224.0.0.1") }},
		{"customer address", func(t *Tables) { t.Records = append(t.Records, t.Records[0]) }},
		{"mac", func(t *Tables) { t.Records[0].MAC = Router }},
		{"mac", func(t *Tables) { t.Records[0].MAC[0] = 1 }},
		{"provider address", func(t *Tables) { t.Records[0].Provider = netip.Addr{} }},
		{"provider address", func(t *Tables) { t.Records[3].Provider = hostA }},
		{"number of records", func(t *Tables) { t.Records = make([]Record, MostRecords+1) }},
		{"domain", func(t *Tables) { t.Routes[2].Domain = "other" }},
		{"domain", func(t *Tables) { t.Routes[0].Domain = "" }},
		{"prefix", func(t *Tables) { t.Routes[0].Prefix = netip.PrefixFrom(addr("10.0.0.1"), 24) }},
		{"prefix", func(t *Tables) { t.Routes = append(t.Routes, t.Routes[0]) }},
		{"next hop", func(t *Tables) { t.Routes[0].NextHop = addr("::") }},
		{"next hop", func(t *Tables) { t.Providers[0].NextHop = addr("0.0.0.0") }},
		{"prefix", func(t *Tables) { t.Providers[0].Prefix = netip.Prefix{} }},
		{"provider address", func(t *Tables) { t.Addresses = append(t.Addresses, t.Addresses[0]) }},
		{"provider address", func(t *Tables) { t.Addresses[0].Address = net("127.0.0.1/8") }},
		{"vlan", func(t *Tables) { t.Addresses[0].VLAN = 4095 }},
		{"encapsulation", func(t *Tables) { t.Addresses[0].Kind = 0 }},
	} {
		x := tables(hostA, tunnel.VXLAN)
		c.change(&x)
		h := newHost(t, tunnel.VXLAN, true)
		var wrong *FieldError
		if err := h.SetTables(x); !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v", c.field, err)
		}
		if _, w := h.send(redA, plain(1)); w == nil {
			t.Errorf("%s: what was refused has changed something", c.field)
		}
	}
}

// TestTenants: an adapter is in one subnet at a time; two in different ones may have the same MAC.
func TestTenants(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, true)
	if err := h.SetTenant(9, red, mac(11)); err == nil {
		t.Error("two adapters of a subnet have one MAC")
	}
	h.can(h.SetTenant(9, blue, mac(11)), h.SetTenant(redB, blue, mac(12)))
	if h.Inside(redA, mac(12)) || !h.Inside(blueA, mac(12)) || h.Inside(redA, mac(11)) || !h.Inside(9, mac(12)) || h.Inside(77, mac(12)) {
		t.Error("who is in which subnet is wrong")
	}
	h.RemoveTenant(9)
	if h.RemoveTenant(9); h.Has(9) || !h.Has(redA) || len(h.Members(blue)) != 2 || len(h.Members(red)) != 1 {
		t.Errorf("members %v, %v", h.Members(red), h.Members(blue))
	}
	if err := h.SetTenant(9, 5, mac(9)); err == nil {
		t.Error("subnet 5 is taken")
	}
}

// TestIsolation: of any tables, adapters and frames on two hosts, an adapter gets what another one of its virtual subnet, or of its routing
// domain by the router, has sent it, as it was sent, and never a frame of anybody else.
func TestIsolation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		subnets := []uint32{5001, 5002, 5003}
		domains := map[uint32]string{5001: "x", 5002: "y", 5003: "x"}
		kind := rapid.SampledFrom([]tunnel.Kind{tunnel.VXLAN, tunnel.NVGRE}).Draw(r, "kind")
		type place struct {
			host   int
			port   Port
			subnet uint32
			mac    eth.MAC
			ip     netip.Addr
		}
		hosts := []netip.Addr{hostA, hostB}
		var places []place
		var x Tables
		for i := range rapid.IntRange(2, 8).Draw(r, "adapters") {
			p := place{rapid.IntRange(0, 1).Draw(r, "host"), Port(i + 2), rapid.SampledFrom(subnets).Draw(r, "subnet"), mac(byte(i + 1)),
				netip.AddrFrom4([4]byte{10, 0, 0, byte(i/2 + 10)})}
			if i%2 == 1 && places[i-1].subnet == p.subnet { // two tenants may have one address
				p.ip = netip.AddrFrom4([4]byte{10, 0, 0, byte(i/2 + 100)})
			}
			places = append(places, p)
			x.Records = append(x.Records, Record{p.subnet, p.ip, p.mac, hosts[p.host]})
		}
		for _, s := range subnets {
			x.Routes = append(x.Routes, CustomerRoute{domains[s], s, netip.MustParsePrefix("10.0.0.0/24"), addr("0.0.0.0"), s})
		}
		var e [2]*Engine
		for i := range e {
			e[i] = New(Config{MAC: mac(byte(0xa0 + i)), MTU: 1500})
			t := x
			t.Addresses = []ProviderAddress{{netip.PrefixFrom(hosts[i], 24), 0, kind}}
			if err := e[i].SetTables(t); err != nil {
				r.Fatal(err)
			}
			for _, p := range places {
				if p.host == i {
					if err := e[i].SetTenant(p.port, p.subnet, p.mac); err != nil {
						r.Fatal(err)
					}
				}
			}
		}
		got := map[Port][][]byte{}
		carry := func(from int, b []byte) {
			a := e[1-from].Arrive(0, b, false)
			switch {
			case a.Frame != nil && a.Everybody:
				for _, p := range e[1-from].Members(a.Subnet) {
					got[p] = append(got[p], bytes.Clone(a.Frame))
				}
			case a.Frame != nil:
				got[a.To] = append(got[a.To], bytes.Clone(a.Frame))
			}
		}
		exchange := func() {
			for n := 0; n < 50 && (e[0].Waiting() || e[1].Waiting()); n++ {
				for i := range e {
					if b := e[i].Next(); b != nil {
						carry(i, b)
					}
				}
			}
		}
		exchange()
		for range 5 {
			s, d := rapid.SampledFrom(places).Draw(r, "from"), rapid.SampledFrom(places).Draw(r, "to")
			dst := rapid.SampledFrom([]eth.MAC{d.mac, d.mac, Router, eth.Broadcast}).Draw(r, "mac")
			b := packet(dst, s.mac, d.ip.String(), s.ip.String(), rapid.IntRange(0, 300).Draw(r, "size"), 0, 64)
			clear(got)
			f := Frame{Head: bytes.Clone(b)}
			v := e[s.host].Send(0, s.port, &f)
			switch {
			case v.Outer != nil:
				carry(s.host, join(v.Outer, &f))
			case v.Local:
				got[v.To] = append(got[v.To], bytes.Clone(f.Head))
			case v.Everybody:
				for _, p := range e[s.host].Members(s.subnet) {
					if p != s.port {
						got[p] = append(got[p], b)
					}
				}
			}
			exchange()
			for _, p := range places {
				for _, g := range got[p.port] {
					switch {
					case p.subnet == s.subnet && (eth.MAC(g) == p.mac || g[0]&1 != 0):
					case dst == Router && domains[p.subnet] == domains[s.subnet] && eth.MAC(g) == p.mac:
					default:
						r.Fatalf("%+v got a frame of %+v to %s: % x", p, s, dst, g)
					}
					if dst != Router && !bytes.Equal(g, b) {
						r.Fatalf("the frame has changed: % x, was % x", g, b)
					}
				}
			}
			if dst == d.mac && d.subnet == s.subnet && d.port != s.port && len(got[d.port]) != 1 {
				r.Fatal(fmt.Sprintf("%+v got %d frames of %+v, %+v", d, len(got[d.port]), s, v))
			}
		}
	})
}
