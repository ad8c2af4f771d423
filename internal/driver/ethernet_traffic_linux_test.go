package driver

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// tagged puts a tag into a frame.
func tagged(f []byte, tci uint16) []byte {
	out := binary.BigEndian.AppendUint16(append([]byte(nil), f[:12]...), uint16(eth.TypeVLAN))
	return append(binary.BigEndian.AppendUint16(out, tci), f[12:]...)
}

// long makes a frame that long.
func long(f []byte, n int) []byte { return append(f, make([]byte, n-len(f))...) }

// counted returns how much each total of an adapter has grown since a snapshot.
func counted(t *testing.T, d *Driver, before counters.Snapshot) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	was := map[string]uint64{}
	for _, in := range before.Instances {
		for _, v := range in.Values {
			if v.Raw != nil {
				was[in.Set+"."+v.Counter] = *v.Raw
			}
		}
	}
	for _, in := range snapshot(t, d).Instances {
		for _, v := range in.Values {
			if name := in.Set + "." + v.Counter; v.Raw != nil && *v.Raw != was[name] && !strings.HasSuffix(name, "_per_second") {
				out[name] = *v.Raw - was[name]
			}
		}
	}
	return out
}

func snapshot(t *testing.T, d *Driver) counters.Snapshot {
	t.Helper()
	s, err := d.counters.Snapshot("adapter_traffic", "network_interface", "ethernet", "adapter_diagnostics")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEthernetCounters: frames of known kinds and lengths count where the manuals say (WinOF 5.50, 4.9.4.1: Adapter Traffic,
// Network Interface), and nowhere else.
func TestEthernetCounters(t *testing.T) {
	cfg := overSockets(t)
	near, far := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	d, other := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, other)
	near.gets(t, "before", func() { far.send(t, far.frame(near.mac, "before")) })
	group := eth.MAC{1, 0, 0x5e, 1, 2, 3}
	plain := func(to eth.MAC, n int) []byte { return long(far.frame(to, "x"), n) }
	own := plain(near.mac, 64)
	copy(own[6:], near.mac[:])
	pause := plain(eth.MAC{1, 0x80, 0xc2, 0, 0, 1}, 60)
	binary.BigEndian.PutUint16(pause[12:], uint16(eth.TypeMACControl))
	received := func(n, bytes uint64, kind string) map[string]uint64 {
		return map[string]uint64{"adapter_traffic.received_packets": n, "adapter_traffic.received_bytes": bytes, "adapter_traffic.packets": n,
			"adapter_traffic.bytes": bytes, "network_interface.received_packets": n, "network_interface.received_bytes": bytes,
			"network_interface.received_" + kind + "_packets": n}
	}
	dropped := func(bytes uint64, names ...string) map[string]uint64 {
		m := map[string]uint64{"adapter_traffic.received_packets": 1, "adapter_traffic.received_bytes": bytes, "adapter_traffic.packets": 1,
			"adapter_traffic.bytes": bytes}
		for _, n := range names {
			m[n] = 1
		}
		return m
	}
	for _, c := range []struct {
		name  string
		from  *guest
		frame []byte
		times int
		want  map[string]uint64
	}{
		{"to its MAC", far, plain(near.mac, 60), 3, received(3, 180, "unicast")},
		{"to a group", far, plain(group, 1000), 2, received(2, 2000, "multicast")},
		{"to everybody", far, plain(eth.Broadcast, 9014), 1, received(1, 9014, "multicast")},
		{"with a priority", far, tagged(plain(near.mac, 100), 5<<13), 1, received(1, 104, "unicast")},
		{"with its own address", far, own, 1, dropped(64, "ethernet.dropped_own_frames")},
		{"in another VLAN", far, tagged(plain(near.mac, 100), 7), 1, dropped(104, "ethernet.dropped_vlan_frames")},
		{"a pause frame", far, pause, 1, dropped(60, "ethernet.control_frames", "adapter_traffic.control_packets")},
		{"too short to send", near, []byte("short"), 1, map[string]uint64{"ethernet.refused_sends": 1, "adapter_traffic.outbound_error_packets": 1,
			"network_interface.outbound_error_packets": 1}},
		{"sent", near, long(near.frame(far.mac, "x"), 500), 2, map[string]uint64{"adapter_traffic.sent_packets": 2, "adapter_traffic.sent_bytes": 1000,
			"adapter_traffic.packets": 2, "adapter_traffic.bytes": 1000, "network_interface.sent_packets": 2, "network_interface.sent_bytes": 1000,
			"network_interface.sent_unicast_packets": 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := snapshot(t, d)
			for range c.times {
				c.from.send(t, c.frame)
			}
			diff := ""
			if !await.Until(func() bool { diff = cmp.Diff(c.want, counted(t, d, before)); return diff == "" }) {
				t.Errorf("counted otherwise than wanted (-):\n%s", diff)
			}
		})
	}
	const want = "DuplicateMAC: port: somebody else on the wire sends with the adapter's address, 02:00:00:00:00:01."
	await.Eventually(t, "an event of the duplicate address", func() bool { return slices.Contains(raised(t, d), want) })
}
