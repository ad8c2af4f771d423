package config

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/softvpi/softvpi/internal/os/paths"
)

func TestConfigurationFile(t *testing.T) {
	c, err := decode(strings.NewReader(`{"adapters": [
		{"name": "left", "address": "127.9.0.1", "roce_max_frame_size": 2048, "path": "wire", "impairment": "loss=1% seed=7"},
		{"name": "right", "address": "fd00::1", "udp_port": 1021}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err = c.Complete()
	if err != nil {
		t.Fatal(err)
	}
	want := []Adapter{
		{Name: "left", Address: netip.MustParseAddr("127.9.0.1"), UDPPort: 4791, RoceMaxFrameSize: 2048, Path: "wire",
			Impairment: "loss=1% seed=7"},
		{Name: "right", Address: netip.MustParseAddr("fd00::1"), UDPPort: 1021},
	}
	if d := cmp.Diff(want, c.Adapters, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

func TestEmptyConfigurationMeansTheDefaults(t *testing.T) {
	t.Setenv(paths.SocketVariable, "")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	c, err := Config{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if c.Socket != "/run/user/7/softvpi/driver.sock" || len(c.Adapters) != len(defaultAdapters()) || c.Adapters[0].UDPPort != 4791 {
		t.Errorf("the completed configuration is %+v", c)
	}
}

func TestWrongConfigurationNamesTheField(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown field", `{"adapter": []}`, `unknown field "adapter"; allowed: socket, `},
		{"unknown adapter field", `{"adapters": [{"adress": "127.9.0.1"}]}`, `unknown field "adress"; allowed: `},
		{"a virtual switch over no adapter", `{"virtual_switches": [{"name": "s", "adapter": "x"}], "adapters": [{"name": "a", "address": "127.9.0.1"}]}`,
			`virtual_switches[0].adapter is "x"; allowed: "a"`},
		{"two virtual switches over one", `{"virtual_switches": [{"name": "s", "adapter": "a"}, {"name": "t", "adapter": "a"}], "adapters": [{"name": "a", "address": "127.9.0.1"}]}`,
			`virtual_switches[1].adapter is "a" again`},
		{"two virtual switches of a name", `{"virtual_switches": [{"name": "s", "adapter": "a"}, {"name": "S", "adapter": "a"}], "adapters": [{"name": "a", "address": "127.9.0.1"}]}`,
			`virtual_switches[1].name is "S"`},
		{"two adapters of a name", `{"virtual_switches": [{"name": "s", "adapter": "a", "adapters": [{"function": "f"}, {"function": "F"}]}], "adapters": [{"name": "a", "address": "127.9.0.1"}]}`,
			`virtual_switches[0].adapters[1].function is "F"`},
		{"wrong type", `{"adapters": [{"name": 3}]}`, "adapters.name is a number; allowed: a string"},
		{"two objects", `{} {}`, "something follows"},
		{"not JSON", `adapters:`, "not JSON at byte 1"},
		{"no address", `{"adapters": [{"name": "a"}]}`, "adapters[0].address is missing; allowed: an IPv4 or IPv6 address"},
		{"bad address", `{"adapters": [{"address": "127.0.0"}]}`, "not a configuration"},
		{"multicast address", `{"adapters": [{"address": "224.0.0.1"}]}`, "adapters[0].address is 224.0.0.1; allowed: "},
		{"frame size", `{"adapters": [{"address": "127.9.0.1", "roce_max_frame_size": 1000}]}`,
			"adapters[0].roce_max_frame_size is 1000; allowed: 256, 512, 1024, 2048, 4096"},
		{"link", `{"adapters": [{"link": "wire"}]}`, `adapters[0].link is "wire"; allowed: udp, interface, tap, datagram, switch, fabric, team, cable, vpi`},
		{"three ports", `{"adapters": [{"link": "cable", "device": "d"}, {"link": "cable", "device": "d"}, {"link": "cable", "device": "d"}]}`, `adapters[2].device is "d" a third time; allowed: two`},
		{"device named like another's adapter", `{"adapters": [{"name": "a", "address": "127.9.0.1"}, {"name": "b", "device": "a", "address": "127.9.0.2"}]}`, `adapters[1].device is "a", the name of an adapter that is not its port`},
		{"device of two generations", `{"adapters": [{"name": "a", "device": "d", "address": "127.9.0.1"}, {"name": "b", "device": "d", "generation": "mlx4", "address": "127.9.0.2"}]}`, `adapters[1].generation is "mlx4"; allowed: mlx5, as port 1`},
		{"long device", `{"adapters": [{"device": "` + strings.Repeat("d", 64) + `", "address": "127.9.0.1"}]}`,
			"adapters[0].device is 64 bytes long"},
		{"device without a node", `{"fabric": {"netlist": "n"}, "adapters": [{"link": "cable", "device": "d"}, {"link": "cable", "device": "d"}]}`, "adapters[0].node is missing; allowed: the node of the fabric"},
		{"device at two nodes", `{"fabric": {"netlist": "n"}, "adapters": [{"link": "cable", "device": "d", "node": "x"}, {"link": "cable", "device": "d", "node": "y"}]}`, `adapters[1].node is "y"; allowed: "x"`},
		{"device's ports exchanged", `{"fabric": {"netlist": "n"}, "adapters": [{"link": "cable", "device": "d", "node": "x", "port": 2}, {"link": "cable", "device": "d", "node": "x"}]}`, `adapters[0].port is 2; allowed: 1`},
		{"VPI without address", `{"adapters": [{"link": "vpi"}]}`, "adapters[0].address is missing"},
		{"UDP port of a cable", `{"adapters": [{"link": "cable", "udp_port": 4791}]}`,
			"adapters[0].udp_port is given; allowed: nothing with"},
		{"port of no node", `{"adapters": [{"link": "cable", "port": 2}]}`, "adapters[0].port is 2; allowed: nothing without a node"},
		{"node without cable", `{"adapters": [{"address": "127.9.0.1", "node": "hca1"}]}`,
			"adapters[0].node is given; allowed: nothing without"},
		{"fabric of nobody", `{"fabric": {}, "adapters": [{"address": "127.9.0.1"}]}`,
			"fabric is given; allowed: nothing without an adapter"},
		{"fabric's rate", `{"fabric": {"rate": "3xEDR"}, "adapters": [{"link": "cable"}]}`, `fabric.rate is "3xEDR"; allowed: 1x, `},
		{"fabric of two kinds", `{"fabric": {"connect": "a", "netlist": "b"}, "adapters": [{"link": "cable"}]}`,
			`fabric.connect is "a", with other fields; allowed: no other fields`},
		{"fabric over UDP", `{"fabric": {"connect": "udp://[::1"}, "adapters": [{"link": "cable"}]}`,
			`fabric.connect is "udp://[::1"; allowed: udp://HOST or udp://HOST:PORT`},
		{"fabric over UDP with a netlist", `{"fabric": {"connect": "udp://h", "key": "k", "netlist": "b"}, "adapters": [{"link": "cable"}]}`, "with other fields; allowed: no other fields (but a key"},
		{"cables nowhere", `{"fabric": {"cables": "here"}, "adapters": [{"link": "cable"}]}`,
			`fabric.cables is "here"; allowed: an address and a port`},
		{"key of nothing", `{"fabric": {"key": "k"}, "adapters": [{"link": "cable"}]}`,
			`fabric.key is "k"; allowed: nothing without cables over UDP`},
		{"subnet manager elsewhere", `{"fabric": {"connect": "a"}, "subnet_manager": true, "adapters": [{"link": "cable"}]}`,
			"subnet_manager is given; allowed: false or nothing"},
		{"subnet manager's priority", `{"subnet_manager": {"priority": 16}, "adapters": [{"link": "cable"}]}`,
			"subnet_manager.priority is 16; allowed: 0 to 15"},
		{"subnet manager of another kind", `{"subnet_manager": 7, "adapters": [{"link": "cable"}]}`,
			"subnet_manager is 7; allowed: true, false or an object"},
		{"subnet manager's routing as text", `{"subnet_manager": {"routing": "updn"}, "adapters": [{"link": "cable"}]}`,
			"subnet_manager.routing is a string"},
		{"unknown field of a subnet manager", `{"subnet_manager": {"master": 1}, "adapters": [{"link": "cable"}]}`,
			`unknown field "master"; allowed: `},
		{"group as address", `{"adapters": [{"link": "cable", "address": "224.0.0.1"}]}`,
			"adapters[0].address is 224.0.0.1; allowed: an IPv4 or IPv6 address of one port"},
		{"routing", `{"subnet_manager": {"routing": ["best"]}, "adapters": [{"link": "cable"}]}`,
			`subnet_manager.routing is "best"; allowed: minhop`},
		{"GID timer", `{"update_gid_timer_frequency": 10001}`, "update_gid_timer_frequency is 10001; allowed: 0 (never) to 10000"},
		{"CM retries", `{"adapters": [{"address": "127.9.0.1", "max_cm_retries": 16}]}`,
			"adapters[0].max_cm_retries is 16; allowed: 1 to 15"},
		{"flow control", `{"adapters": [{"address": "127.9.0.1", "roce_rc_e2e_flow_control_enable": 2}]}`,
			"adapters.roce_rc_e2e_flow_control_enable is a number"},
		{"path", `{"adapters": [{"address": "127.9.0.1", "path": "air"}]}`,
			`adapters[0].path is "air"; allowed: auto, wire, local, direct`},
		{"port", `{"adapters": [{"address": "127.9.0.1", "udp_port": 70000}]}`, "adapters.udp_port is a number 70000; allowed: a uint16"},
		{"impairment", `{"adapters": [{"address": "127.9.0.1", "impairment": "loss=200"}]}`,
			`adapters[0].impairment: impairment loss=200: want a percentage from 0 to 100`},
		{"name twice", `{"adapters": [{"name": "a", "address": "127.9.0.1"}, {"name": "a", "address": "127.9.0.2"}]}`,
			`adapters[1].name is "a" again`},
		{"address twice", `{"adapters": [{"address": "127.9.0.1"}, {"address": "127.9.0.1"}]}`,
			"adapters[1].address is 127.9.0.1:4791 again"},
		{"long socket", `{"socket": "/` + strings.Repeat("x", 120) + `"}`, "socket is 121 bytes long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := decode(strings.NewReader(c.text))
			if err == nil {
				_, err = cfg.Complete()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestSlots: the first adapter with a device's name is its port 1 and the second port 2, and those with cables are those
// ports of one node of the fabric. An adapter without one is a device of its own.
func TestSlots(t *testing.T) {
	cfg, err := decode(strings.NewReader(`{"fabric": {"netlist": "n"}, "adapters": [{"link": "cable", "device": "d", "node": "x"}, {"name": "alone", "address": "127.9.0.1"},
		{"link": "cable", "device": "d"}, {"name": "e", "device": "single", "address": "127.9.0.2"}]}`))
	if err == nil {
		cfg, err = cfg.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Slot{{"d", 0, 1, 2}, {"alone", 1, 1, 1}, {"d", 0, 2, 2}, {"single", 3, 1, 1}} {
		if got := cfg.Slot(i); got != want {
			t.Errorf("adapter %d: %+v, want %+v", i, got, want)
		}
	}
	if a, b := cfg.Adapters[0], cfg.Adapters[2]; a.Node != "x" || b.Node != "x" || a.Port != 1 || b.Port != 2 {
		t.Errorf("the ports are %s port %d and %s port %d, want x ports 1 and 2", a.Node, a.Port, b.Node, b.Port)
	}
}

func TestAdapterOption(t *testing.T) {
	a, err := ParseAdapter("Ethernet 7=127.9.0.1,port=1021,mtu=1024,path=wire,anyport,follow")
	want := Adapter{Name: "Ethernet 7", Address: netip.MustParseAddr("127.9.0.1"), UDPPort: 1021, RoceMaxFrameSize: 1024, Path: "wire",
		FollowInterface: true, AnySourcePort: true}
	if diff := cmp.Diff(want, a, cmp.Comparer(func(x, y netip.Addr) bool { return x == y })); err != nil || diff != "" {
		t.Errorf("%v, other than wanted (-):\n%s", err, diff)
	}
	for _, bad := range []string{"127.9.0.1", "a=b", "a=127.9.0.1,port=0", "a=127.9.0.1,port=x", "a=127.9.0.1,mtu=9",
		"a=127.9.0.1,path=air", "a=127.9.0.1,speed=1", "a="} {
		if _, err := ParseAdapter(bad); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%q: got %v, want what is allowed", bad, err)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add(`{"adapters": [{"name": "left", "address": "127.9.0.1", "impairment": "loss=1%"}]}`)
	f.Add(`{"socket": 3}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decode(strings.NewReader(text))
		if err != nil {
			return
		}
		if c, err = c.Complete(); err != nil {
			return
		}
		if again, err := c.Complete(); err != nil || len(again.Adapters) != len(c.Adapters) {
			t.Errorf("completing a configuration again: %v", err)
		}
	})
}

// TestGIDInterval: UpdateGIDTimerFrequency is in milliseconds; absent means the default, and 0 never.
func TestGIDInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{}`: 0, `{"update_gid_timer_frequency": 0}`: -1, `{"update_gid_timer_frequency": 250}`: 250 * time.Millisecond,
	} {
		cfg, err := decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.GIDInterval(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
