package driver

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// guest is a virtual machine's card: a unix datagram socket.
type guest struct {
	*net.UnixConn
	mac  eth.MAC
	path string // the driver's socket
}

// withGuest gives the adapter of a configuration a guest as its host.
func withGuest(t *testing.T, c *config.Config, mac string) *guest {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &c.Adapters[0]
	g := &guest{path: filepath.Join(dir, "x")}
	a.MAC, a.Host = mac, "datagram:"+g.path
	m, _ := net.ParseMAC(mac)
	g.mac = eth.MAC(m)
	if g.UnixConn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: g.path + ".peer", Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// frame is one of the guest's, with a payload of a type that nobody else sends.
func (g *guest) frame(to eth.MAC, payload string) []byte {
	h := eth.Ethernet{Dst: to, Src: g.mac, Type: 0x88b5}
	b := make([]byte, h.Len(), 200)
	h.Put(b)
	b = append(b, payload...)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

func (g *guest) send(t *testing.T, f []byte) {
	t.Helper()
	if _, err := g.WriteToUnix(f, &net.UnixAddr{Name: g.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
}

// drain reads and forgets what has arrived.
func (g *guest) drain(t *testing.T) {
	t.Helper()
	raw, err := g.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if err := raw.Read(func(fd uintptr) bool {
		for err == nil {
			_, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_DONTWAIT)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
}

// gets reports whether a frame arrives, while others are sent.
func (g *guest) gets(t *testing.T, payload string, send func()) {
	t.Helper()
	b := make([]byte, 70000)
	await.Eventually(t, payload+" arrives", func() bool {
		send()
		_ = g.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		for {
			n, err := g.Read(b)
			if err != nil {
				return false
			}
			if bytes.Contains(b[:n], []byte(payload)) {
				return true
			}
		}
	})
}

// TestEthernet_Guests: the guests of two drivers reach each other through the Ethernet functions of their adapters, beside RDMA
// with the same MACs, with RoCE disabled too, and while an adapter is disabled nothing passes. What they send is counted.
func TestEthernet_Guests(t *testing.T) {
	cfg := overSockets(t)
	a, b := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	d, far := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, far)
	b.gets(t, "to the MAC", func() { a.send(t, a.frame(b.mac, "to the MAC")) })
	a.gets(t, "to everybody", func() { b.send(t, b.frame(eth.Broadcast, "to everybody")) })
	across(t, end{d, 0}, end{far, 0})
	a.gets(t, "to the host, beside RDMA", func() { b.send(t, b.frame(a.mac, "to the host, beside RDMA")) })

	a.send(t, a.frame(b.mac, "short")[:10])
	s := d.Status().Adapters[0].Ethernet
	if s == nil || !s.Up || s.MTU != 9000 || s.MAC != "02:00:00:00:00:01" || s.Host != "datagram socket "+a.path {
		t.Fatalf("%+v", s)
	}
	await.Eventually(t, "a frame that is too short is counted", func() bool {
		return d.Status().Adapters[0].Ethernet.Counters["refused_sends"] == 1
	})
	if c := d.Status().Adapters[0].Ethernet.Counters; c["sent_packets"] < 1 || c["received_packets"] < 2 || c["sent_multicast_packets"] != 0 {
		t.Errorf("%v", c)
	}

	set(t, d, "port", "roce_mode", "4")
	restart(t, d, "port")
	if s := d.Status().Adapters[0]; s.RoCE != "none" && len(s.GIDs) != 0 || !s.Ethernet.Up || !s.Up {
		t.Errorf("without RoCE: %+v", s.Ethernet)
	}
	b.gets(t, "without RoCE", func() { a.send(t, a.frame(b.mac, "without RoCE")) })

	if err := far.SetAdapter(AdapterRequest{Adapter: "port", Enable: false}); err != nil {
		t.Fatal(err)
	}
	if far.Status().Adapters[0].Ethernet.Up {
		t.Error("the function of a disabled adapter is up")
	}
	a.send(t, a.frame(b.mac, "to nobody"))
	if err := far.SetAdapter(AdapterRequest{Adapter: "port", Enable: true}); err != nil {
		t.Fatal(err)
	}
	b.gets(t, "enabled again", func() { a.send(t, a.frame(b.mac, "enabled again")) })
	set(t, far, "port", "NetworkAddress", "020000000009")
	restart(t, far, "port")
	to := eth.MAC{2, 5: 9}
	b.gets(t, "to another address", func() { a.send(t, a.frame(to, "to another address")) })
}

// TestEthernetKeys: the keys of Ethernet functions take effect in a function that works with them, those of rings and queues at
// the next start of their adapter, all others at once; back at their defaults as well.
func TestEthernetKeys(t *testing.T) {
	t.Parallel()
	for generation, values := range map[string]map[string]string{
		"mlx5": {"*JumboPacket": "4014", "*ReceiveBuffers": "1024", "*TransmitBuffers": "512", "*LsoV2IPv4": "0", "*LsoV2IPv6": "0", "LSOSize": "40000",
			"LSOMinSegment": "5", "LSOTcpOptions": "0", "LSOIpOptions": "0", "*IPChecksumOffloadIPv4": "1", "*TCPUDPChecksumOffloadIPv4": "2",
			"*TCPUDPChecksumOffloadIPv6": "2", "*RscIPv4": "0", "*RscIPv6": "0", "*PriorityVLANTag": "0", "PromiscuousVlan": "1",
			"*NumRSSQueues": "1", "*RSSProfile": "2", "*MaxRSSProcessors": "1", "SendCompletionMethod": "0", "AsyncReceiveIndicate": "2",
			"RfdReservationFactor": "300", "RecvCompletionMethod": "0", "*InterruptModeration": "0", "VlanID": "7",
			"ReturnPacketThreshold": "100", "NumTcb": "9", "*RssBaseProcNumber": "1", "*RssBaseProcGroup": "0", "*RssMaxProcNumber": "60",
			"*NumaNodeID": "0", "*EncapsulatedPacketTaskOffload": "0", "*VxlanUDPPortNumber": "8472"},
		"mlx4": {"UseRSSForUDP": "0", "UseRSSForRawIP": "0", "DefaultRecvRingProcessor": "1", "TxHashDistribution": "1",
			"RxSmallPacketBypass": "1", "*RSS": "0", "MaxNumOfMCList": "64", "*HeaderDataSplit": "1", "IgnoreFCS": "1", "*LsoV1IPv4": "0",
			"TxForwardingProcessor": "1", "TxInterruptProcessor": "0", "RssMonitoringEnabled": "1", "RssCountersActivatedAtStartup": "1",
			"MaxNumRssCpus": "1", "MaximumWorkingThreads": "1", "*EncapsulatedPacketTaskOffloadVxlan": "0"},
	} {
		t.Run(generation, func(t *testing.T) {
			cfg := overSockets(t)[0]
			withGuest(t, &cfg, "02:00:00:00:00:01")
			cfg.Adapters[0].Generation = generation
			d := start(t, cfg)
			defer stop(t, d)
			for key, value := range values {
				set(t, d, "port", key, value)
			}
			g, _ := config.ParseGeneration(generation)
			worksWith(t, d, g, values, catalogue.AtOnce)
			restart(t, d, "port")
			worksWith(t, d, g, values, catalogue.AtRestart)
			for key := range values {
				if _, err := d.Set("port", key, nil); err != nil {
					t.Error(err)
				}
			}
			for key := range values {
				if effect(t, g, key) == catalogue.AtOnce {
					delete(values, key)
				}
			}
			worksWith(t, d, g, values, catalogue.AtRestart)
		})
	}
}

// TestDriverParameters: the parameters inside the driver (WinOF 5.50, 5.5.3.9) take effect in a function that works, and stay over a
// restart of its adapter.
func TestDriverParameters(t *testing.T) {
	t.Parallel()
	cfg := overSockets(t)[0]
	withGuest(t, &cfg, "02:00:00:00:00:01")
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	want := d.host.Ethernet(0).Config
	change := func(name string, n *uint64) {
		t.Helper()
		p, _ := catalogue.LookupParameter(name)
		c, err := d.running[0].known().Configure(p, n)
		if err == nil {
			_, err = d.ChangeRegistry([]registry.Change{c}, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	names := ethernet.Keys()
	for _, p := range catalogue.ParametersFor(catalogue.DriverTool, catalogue.MLX4) {
		if built := p.Status == catalogue.Built; built != slices.Contains(names, p.Name) {
			t.Errorf("%s counts as built: %v", p.Name, built)
		}
		if p.Status != catalogue.Built {
			continue
		}
		was, n := want, uint64(1)
		if p.Default.Number == 1 {
			n = 2
		}
		change(p.Name, &n)
		want.Set(p.Name, int(n))
		if got := d.host.Ethernet(0).Config; !cmp.Equal(want, got) {
			t.Errorf("%s %d: %s", p.Name, n, cmp.Diff(want, got))
		}
		restart(t, d, "port")
		if got := d.host.Ethernet(0).Config; !cmp.Equal(want, got) {
			t.Errorf("%s %d, after a restart: %s", p.Name, n, cmp.Diff(want, got))
		}
		change(p.Name, nil)
		if want = was; !cmp.Equal(want, d.host.Ethernet(0).Config) {
			t.Errorf("%s back: %s", p.Name, cmp.Diff(want, d.host.Ethernet(0).Config))
		}
	}
}

// TestWakeOnMagicConfiguration: mlxconfig's WOL_MAGIC_EN_P1 0 takes magic packets from the adapter's next start on, whatever
// *WakeOnMagicPacket says.
func TestWakeOnMagicConfiguration(t *testing.T) {
	cfg := overSockets(t)[0]
	withGuest(t, &cfg, "02:00:00:00:00:01")
	d := start(t, cfg)
	defer stop(t, d)
	set(t, d, "port", "*WakeOnMagicPacket", "1")
	for _, n := range []uint64{0, 1} {
		p, _ := catalogue.LookupParameter("WOL_MAGIC_EN_P1")
		c, err := d.running[0].known().Configure(p, &n)
		if err == nil {
			_, err = d.ChangeRegistry([]registry.Change{c}, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		restart(t, d, "port")
		if got := d.host.Ethernet(0).Config.WakeOnMagicPacket; got != int(n) {
			t.Errorf("WOL_MAGIC_EN_P1 %d: magic packets wake: %d", n, got)
		}
	}
}

// effect returns when a key of Ethernet functions takes effect.
func effect(t *testing.T, g catalogue.Generation, key string) catalogue.Effect {
	t.Helper()
	for _, k := range catalogue.LookupFor(key, catalogue.Target{Generation: g}) {
		return k.Effect
	}
	t.Fatalf("%s is no key", key)
	return 0
}

// worksWith checks that the function works with those of the values that take effect at most as late, and defaults for the others.
func worksWith(t *testing.T, d *Driver, g catalogue.Generation, values map[string]string, latest catalogue.Effect) {
	t.Helper()
	s := d.host.Ethernet(0)
	c := ethernet.Defaults(g)
	c.MAC, c.JumboPacket, c.Host, c.Machine = s.Config.MAC, s.Config.JumboPacket, s.Config.Host, s.Config.Machine
	for key, value := range values {
		n, err := strconv.Atoi(value)
		if latest == catalogue.AtOnce && effect(t, g, key) != catalogue.AtOnce {
			continue
		}
		if err != nil || !c.Set(strings.Replace(key, "VlanID", "VlanId", 1), n) {
			t.Errorf("%s is no key of the function, %v", key, err)
		}
	}
	if diff := cmp.Diff(c, s.Config); !s.On || diff != "" {
		t.Errorf("it works: %v, with other values than wanted (-) \n%s", s.On, diff)
	}
}
