package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
)

// TestParseAdapter_Wires: the command line names whole-frame links, and the adapter's place on them.
func TestParseAdapter_Wires(t *testing.T) {
	for text, want := range map[string]Adapter{
		"e=192.0.2.1/24,interface=eth0": {Link: LinkInterface, Interface: "eth0", Wire: Wire{Prefix: 24}},
		"e=192.0.2.1,tap=tap0,linkmtu=9000,gateway=192.0.2.254": {Link: LinkTAP, Interface: "tap0",
			Wire: Wire{LinkMTU: 9000}},
		"e=192.0.2.1/24,datagram=/run/x,mac=02:00:00:00:00:07,vlan=9": {Link: LinkDatagram,
			Wire: Wire{Datagram: "/run/x", Peer: "/run/x.peer", Prefix: 24, MAC: "02:00:00:00:00:07", VLAN: 9}},
		"e=192.0.2.1,switch=s,pvid=10,trunk=20+30-39,vlan=31,linkmtu=9000": {Link: LinkSwitch,
			Wire: Wire{Switch: "s", PVID: 10, Trunk: "20+30-39", VLAN: 31, LinkMTU: 9000}},
		"e=192.0.2.1,datagram=/run/x,peer=/run/y": {Link: LinkDatagram, Wire: Wire{Datagram: "/run/x", Peer: "/run/y"}},
	} {
		a, err := ParseAdapter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want.Gateway = a.Gateway
		if strings.Contains(text, "gateway") != a.Gateway.IsValid() || a.Link != want.Link || a.Interface != want.Interface ||
			!cmp.Equal(a.Wire, want.Wire, cmp.Comparer(func(x, y Wire) bool { return x == y })) {
			t.Errorf("%s: %+v, want %+v", text, a, want)
		}
	}
}

// TestParseAdapter_WiresRefused: what does not go together with a kind of link, or is out of range, is refused by its field.
func TestParseAdapter_WiresRefused(t *testing.T) {
	for text, field := range map[string]string{
		"e=192.0.2.1,interface=eth0,tap=tap0":        "--adapter option",
		"e=192.0.2.1,interface=":                     "adapters[0].interface",
		"e=192.0.2.1,interface=a/b":                  "adapters[0].interface",
		"e=192.0.2.1,interface=eth0,linkmtu=9000":    "adapters[0].link_mtu",
		"e=192.0.2.1,tap=tap0,linkmtu=100":           "adapters[0].link_mtu",
		"e=192.0.2.1,tap=tap0,follow":                "adapters[0].follow_interface",
		"e=192.0.2.1,tap=tap0,frames=on":             "adapters[0].frames",
		"e=192.0.2.1,datagram=run":                   "adapters[0].datagram",
		"e=192.0.2.1,datagram=/run/x,peer=/run/x":    "adapters[0].peer",
		"e=192.0.2.1,tap=tap0,peer=/run/x":           "adapters[0].peer",
		"e=192.0.2.1,tap=tap0,mac=01:00:00:00:00:01": "adapters[0].mac",
		"e=192.0.2.1,tap=tap0,mac=2":                 "adapters[0].mac",
		"e=192.0.2.1,tap=tap0,vlan=4095":             "adapters[0].vlan",
		"e=192.0.2.1,tap=tap0,gateway=fd00::1":       "adapters[0].gateway",
		"e=192.0.2.1/24":                             "adapters[0].datagram, peer, switch, pvid, trunk, prefix, gateway, mac, vlan, link_mtu",
		"e=192.0.2.1,vlan=3":                         "adapters[0].datagram, peer, switch, pvid, trunk, prefix, gateway, mac, vlan, link_mtu",
		"e=192.0.2.1/33,tap=tap0":                    "--adapter",
		"ib=cable,tap=tap0":                          "--adapter option",
		"e=192.0.2.1,switch=":                        "adapters[0].switch",
		"e=192.0.2.1,switch=s,tap=tap0":              "--adapter option",
		"e=192.0.2.1,switch=s,pvid=0":                "--adapter option",
		"e=192.0.2.1,switch=s,pvid=4095":             "adapters[0].pvid",
		"e=192.0.2.1,switch=s,trunk=20-10":           "adapters[0].trunk",
		"e=192.0.2.1,switch=s,trunk=10":              "adapters[0].vlan", // frames without a tag are dropped
		"e=192.0.2.1,switch=s,trunk=10,vlan=11":      "adapters[0].vlan",
		"e=192.0.2.1,switch=s,pvid=10,vlan=10":       "adapters[0].vlan", // its frames leave without a tag
		"e=192.0.2.1,switch=s,vlan=4095":             "adapters[0].vlan",
		"e=192.0.2.1,switch=s,peer=/run/x":           "adapters[0].peer",
		"e=192.0.2.1,switch=s,interface=eth0":        "adapters[0].interface",
		"e=192.0.2.1,tap=tap0,pvid=10":               "adapters[0].pvid",
		"e=192.0.2.1,tap=tap0,trunk=all":             "adapters[0].trunk",
	} {
		_, err := ParseAdapter(text)
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want %s refused", text, err, field)
		}
	}
}

// parseAll parses and completes adapters.
func parseAll(t *testing.T, texts []string) (c Config, err error) {
	t.Helper()
	for _, s := range texts {
		a, err := ParseAdapter(s)
		if err != nil {
			t.Fatal(err)
		}
		c.Adapters = append(c.Adapters, a)
	}
	return c.Complete()
}

// TestComplete_OneWire: adapters on one wire are functions at one port, told apart by their MACs and VLANs.
func TestComplete_OneWire(t *testing.T) {
	parse := func(texts ...string) (Config, error) { return parseAll(t, texts) }
	c, err := parse("a=192.0.2.1,tap=tap0", "b=192.0.2.2,tap=tap0,mac=02:00:00:00:00:02", "c=192.0.2.3,tap=tap1")
	if err != nil || c.FirstOnWire(0) != 0 || c.FirstOnWire(1) != 0 || c.FirstOnWire(2) != 2 {
		t.Errorf("%v, first on the wires %d, %d, %d", err, c.FirstOnWire(0), c.FirstOnWire(1), c.FirstOnWire(2))
	}
	if c.Adapters[0].StationMAC() == [6]byte{} || c.Adapters[1].StationMAC() != [6]byte{2, 5: 2} {
		t.Errorf("MACs %x, %x", c.Adapters[0].StationMAC(), c.Adapters[1].StationMAC())
	}
	for field, texts := range map[string][]string{
		"adapters[1].mac": {"a=192.0.2.1,tap=tap0", "b=192.0.2.2,tap=tap0"},
		"adapters[2].mac": {"a=192.0.2.1,tap=tap0", "b=192.0.2.2,tap=tap0,mac=02:00:00:00:00:02", "c=192.0.2.3,tap=tap0,mac=02:00:00:00:00:02"},
		"adapters[1].peer, link_mtu, receive_buffer, speed, limit_speed": {"a=192.0.2.1,tap=tap0", "b=192.0.2.2,tap=tap0,mac=02:00:00:00:00:02,linkmtu=1400"},
	} {
		_, err := parse(texts...)
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%q: %v, want %s refused", texts, err, field)
		}
	}
	if _, err := parse("a=192.0.2.1,tap=tap0", "b=192.0.2.2,tap=tap0,mac=02:00:00:00:00:02,vlan=5",
		"c=192.0.2.3,tap=tap0,mac=02:00:00:00:00:02"); err != nil {
		t.Errorf("the same MAC in another VLAN: %v", err)
	}
}

// TestParseAdapter_Speed: a port has a speed of the manuals' cards, and may be limited to it, whatever carries its packets.
func TestParseAdapter_Speed(t *testing.T) {
	for text, want := range map[string]uint32{"a=192.0.2.1,tap=t,speed=25,limit": 25, "a=192.0.2.1,speed=100": 100, "a=192.0.2.1,switch=s": 0} {
		if a, err := ParseAdapter(text); err != nil || a.Speed != want || a.LimitSpeed != (want == 25) {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	for text, field := range map[string]string{
		"a=192.0.2.1,tap=t,speed=1": "adapters[0].speed",
		"a=192.0.2.1,tap=t,speed=0": "--adapter option",
		"a=192.0.2.1,tap=t,speed=x": "--adapter option",
		"a=192.0.2.1,tap=t,limit":   "adapters[0].limit_speed",
		"a=cable,speed=10":          "adapters[0].speed",
	} {
		var wrong *api.FieldError
		if _, err := ParseAdapter(text); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want %s refused", text, err, field)
		}
	}
}
