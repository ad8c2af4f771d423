package subnets

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// The kinds of entries, with the settings that each has and those that it must have.
const (
	record        = "record"
	route         = "route"
	address       = "address"
	providerRoute = "provider-route"
)

var kinds = []struct {
	name           string
	settings, must []string
}{
	{record, []string{"vsid", "customer", "mac", "provider", "machine"}, []string{"vsid", "customer", "mac", "provider"}},
	{route, []string{"domain", "vsid", "prefix", "via", "metric"}, []string{"domain", "vsid", "prefix"}},
	{address, []string{"adapter", "address", "vlan", "encapsulation"}, []string{"adapter", "address"}},
	{providerRoute, []string{"adapter", "prefix", "via", "metric"}, []string{"adapter", "prefix", "via"}},
}

var encapsulations = map[string]tunnel.Kind{"vxlan": tunnel.VXLAN, "nvgre": tunnel.NVGRE}

// mostText is the longest text of a setting.
const mostText = 127

// parse reads the settings of an entry; whole says that none that it must have may be missing. given are their names.
func parse(kind string, words []string, whole bool) (e api.OverlayEntry, given []string, err error) {
	k := slices.IndexFunc(kinds, func(k struct {
		name           string
		settings, must []string
	}) bool {
		return k.name == kind
	})
	if k < 0 {
		return e, nil, api.Wrong("kind", strconv.Quote(kind), "record, route, address, provider-route")
	}
	e.Kind = kind
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case !ok || slices.Contains(given, name):
			return e, nil, api.Wrong("setting", strconv.Quote(w), "NAME=VALUE, each name once")
		case !slices.Contains(kinds[k].settings, name):
			return e, nil, api.Wrong("setting", strconv.Quote(name), strings.Join(kinds[k].settings, ", "))
		}
		given = append(given, name)
		if err := set(&e, name, value); err != nil {
			return e, nil, err
		}
	}
	if !whole {
		return e, given, nil
	}
	for _, name := range kinds[k].must {
		if !slices.Contains(given, name) {
			return e, nil, api.Wrong(name, "missing", fmt.Sprintf("%s= with a %s", name, kind))
		}
	}
	complete(&e)
	return e, given, nil
}

// complete gives an entry what it was not given.
func complete(e *api.OverlayEntry) {
	switch e.Kind {
	case route:
		if e.Via == "" {
			e.Via = netip.IPv6Unspecified().String()
			if netip.MustParsePrefix(e.Prefix).Addr().Is4() {
				e.Via = netip.IPv4Unspecified().String()
			}
		}
	case address:
		if e.Encapsulation == "" {
			e.Encapsulation = "vxlan"
		}
	}
}

// set sets one of an entry's settings. Those that are there are written in one way.
func set(e *api.OverlayEntry, name, value string) error {
	wrong := func(allowed string) error { return api.Wrong(name, strconv.Quote(value), allowed) }
	switch name {
	case "vsid", "metric", "vlan":
		n, err := strconv.ParseUint(value, 10, 32)
		switch {
		case name == "vsid" && (err != nil || overlay.CheckSubnet(uint32(n)) != nil):
			return wrong(fmt.Sprintf("%d to %d", overlay.LeastSubnet, overlay.MostSubnet))
		case name == "vlan" && (err != nil || n > 4094):
			return wrong("0 (none), 1 to 4094")
		case err != nil || name == "metric" && n > 65535:
			return wrong("0 to 65535")
		}
		switch name {
		case "vsid":
			e.VSID = uint32(n)
		case "vlan":
			e.VLAN = uint16(n)
		default:
			e.Metric = uint32(n)
		}
	case "customer", "provider", "via":
		a, err := netip.ParseAddr(value)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return wrong("an IPv4 or IPv6 address")
		}
		*map[string]*string{"customer": &e.Customer, "provider": &e.Provider, "via": &e.Via}[name] = a.String()
	case "prefix", "address":
		p, err := netip.ParsePrefix(value)
		if err != nil || p.Addr().Is4In6() {
			return wrong("an address with the length of its network, as 192.0.2.0/24")
		}
		*map[string]*string{"prefix": &e.Prefix, "address": &e.Address}[name] = p.String()
	case "mac":
		m, err := net.ParseMAC(value)
		if err != nil || len(m) != 6 {
			return wrong("the MAC of one station, as 02:00:00:00:00:01")
		}
		e.MAC = m.String()
	case "encapsulation":
		if e.Encapsulation = strings.ToLower(value); encapsulations[e.Encapsulation] == 0 {
			return wrong("vxlan, nvgre")
		}
	default:
		if value == "" || len(value) > mostText || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return wrong(fmt.Sprintf("1 to %d printable characters", mostText))
		}
		*map[string]*string{"machine": &e.Machine, "domain": &e.Domain, "adapter": &e.Adapter}[name] = value
	}
	return nil
}

// matches reports whether an entry has what another was given.
func matches(e, want *api.OverlayEntry, given []string) bool {
	has, wants := words(e), words(want)
	for _, name := range given {
		if !strings.EqualFold(has[name], wants[name]) {
			return false
		}
	}
	return e.Kind == want.Kind
}

// words returns an entry's settings by name.
func words(e *api.OverlayEntry) map[string]string {
	m := map[string]string{}
	for _, w := range e.Words() {
		name, value, _ := strings.Cut(w, "=")
		m[name] = value
	}
	return m
}

// split returns the words of a line: of one that is kept those between tabs, as names may have spaces, else those between spaces.
func split(line string) []string {
	if strings.Contains(line, "\t") {
		return strings.Split(line, "\t")
	}
	return strings.Fields(line)
}

// add adds an entry, which was read without an error, to tables.
func add(t *overlay.Tables, e *api.OverlayEntry) {
	prefix, _ := netip.ParsePrefix(e.Prefix)
	via, _ := netip.ParseAddr(e.Via)
	switch e.Kind {
	case record:
		mac, _ := net.ParseMAC(e.MAC)
		customer, _ := netip.ParseAddr(e.Customer)
		provider, _ := netip.ParseAddr(e.Provider)
		t.Records = append(t.Records, overlay.Record{Subnet: e.VSID, Customer: customer, MAC: eth.MAC(mac), Provider: provider})
	case route:
		t.Routes = append(t.Routes, overlay.CustomerRoute{Domain: strings.ToLower(e.Domain), Subnet: e.VSID, Prefix: prefix, NextHop: via,
			Metric: e.Metric})
	case address:
		own, _ := netip.ParsePrefix(e.Address)
		t.Addresses = append(t.Addresses, overlay.ProviderAddress{Address: own, VLAN: e.VLAN, Kind: encapsulations[e.Encapsulation]})
	case providerRoute:
		t.Providers = append(t.Providers, overlay.ProviderRoute{Prefix: prefix, NextHop: via, Metric: e.Metric})
	}
}
