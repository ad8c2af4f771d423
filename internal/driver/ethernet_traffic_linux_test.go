package driver

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// tagged puts a tag into a frame.
func tagged(f []byte, tci uint16) []byte {
	out := binary.BigEndian.AppendUint16(append([]byte(nil), f[:12]...), uint16(eth.TypeVLAN))
	return append(binary.BigEndian.AppendUint16(out, tci), f[12:]...)
}

// long makes a frame that long.
func long(f []byte, n int) []byte { return append(f, make([]byte, n-len(f))...) }

// counted returns how much each total of the near adapter has grown since a snapshot.
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
	// WinOF-2's set says the same by other names.
	for name, n := range out {
		if short, of := strings.CutPrefix(name, "adapter_traffic."); of && out["port_traffic."+short] == n {
			delete(out, "port_traffic."+short)
		} else if of && d.cfg.Adapters[0].Generation != "mlx4" {
			out["port_traffic."+short+", which is not the same"] = out["port_traffic."+short] // at this moment: the sets are read one by one
		}
	}
	return out
}

// soon looks for a second: who calls it does so again if that was too short.
func soon(is func() bool) bool {
	for range 100 {
		if is() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// snapshot returns the sets of the near adapter about its port and its host.
func snapshot(t *testing.T, d *Driver) counters.Snapshot {
	t.Helper()
	s, err := d.counters.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"adapter_traffic", "port_traffic", "network_interface", "ethernet", "adapter_diagnostics", "rdma_activity"}
	s.Instances = slices.DeleteFunc(s.Instances, func(in counters.Instance) bool { return in.Name != "near" || !slices.Contains(sets, in.Set) })
	return s
}

// carriedBy are the counts of frames of one direction, "received" or "sent", on the wire.
func carriedBy(direction string, frames, bytes uint64) map[string]uint64 {
	return map[string]uint64{"adapter_traffic." + direction + "_packets": frames, "adapter_traffic." + direction + "_bytes": bytes,
		"adapter_traffic.packets": frames, "adapter_traffic.bytes": bytes}
}

// hosted are these, and those of the same frames at the host, of a kind.
func hosted(direction string, frames, bytes uint64, kind string) map[string]uint64 {
	m := carriedBy(direction, frames, bytes)
	m["network_interface."+direction+"_packets"], m["network_interface."+direction+"_bytes"] = frames, bytes
	m["network_interface."+direction+"_"+kind+"_packets"] = frames
	return m
}

// also adds counts of n.
func also(m map[string]uint64, n uint64, names ...string) map[string]uint64 {
	for _, name := range names {
		m[name] += n
	}
	return m
}

// TestEthernetCounters: frames of known kinds and lengths count where the manuals say (WinOF 5.50, 4.9.4.1: Adapter Traffic,
// Network Interface; 4.9.4.2), and nowhere else, over every wire.
func TestEthernetCounters(t *testing.T) {
	systemtest.Mark(t)
	eachWire(t, func(t *testing.T, w *wired) {
		near, far := withGuest(t, &w.cfg[0], w.cfg[0].Adapters[0].MAC), withGuest(t, &w.cfg[1], w.cfg[1].Adapters[0].MAC)
		for i := range w.cfg {
			w.cfg[i].Adapters[0].NoProbes = true // which would be counted, too
		}
		w.start(t)
		d := w.d[0]
		near.gets(t, "before", func() { far.send(t, far.frame(near.mac, "before")) })
		far.gets(t, "back", func() { near.send(t, near.frame(far.mac, "back")) })
		group := eth.MAC{1, 0, 0x5e, 1, 2, 3}
		plain := func(to eth.MAC, n int) []byte { return long(far.frame(to, "x"), n) }
		own := plain(near.mac, 64)
		copy(own[6:], near.mac[:])
		pause := plain(eth.MAC{1, 0x80, 0xc2, 0, 0, 1}, 60)
		binary.BigEndian.PutUint16(pause[12:], uint16(eth.TypeMACControl))
		binary.BigEndian.PutUint16(pause[14:], 1)
		unknown := append([]byte(nil), pause...)
		copy(unknown, near.mac[:])
		binary.BigEndian.PutUint16(unknown[14:], 7)
		wrong := far.packet(near.mac, eth.ProtocolTCP, 100)
		sum := eth.IPv4(wrong[eth.EthernetLen:])
		sum.PutChecksum(^sum.Checksum())
		priority := uint64(104)
		if w.wire == "switch" { // whose port takes the tag out, as it is untagged for VLAN 1
			priority = 100
		}
		const dropped = "network_interface.outbound_error_packets"
		for _, c := range []struct {
			name  string
			from  *guest
			frame []byte
			times int
			want  map[string]uint64
			not   string // the wire that does not let it pass
		}{
			{"to its MAC", far, plain(near.mac, 60), 3, hosted("received", 3, 180, "unicast"), ""},
			{"to a group", far, plain(group, 1000), 2, hosted("received", 2, 2000, "multicast"), ""},
			{"to everybody", far, plain(eth.Broadcast, 9014), 1, hosted("received", 1, 9014, "multicast"), ""},
			{"with a priority", far, tagged(plain(near.mac, 100), 5<<13), 1, hosted("received", 1, priority, "unicast"), ""},
			{"with a wrong checksum", far, wrong, 1, also(hosted("received", 1, uint64(len(wrong)), "unicast"), 1,
				"ethernet.received_checksum_errors", "network_interface.received_error_packets"), ""},
			{"in another VLAN", far, tagged(plain(near.mac, 100), 7), 1, also(carriedBy("received", 1, 104), 1, "ethernet.dropped_vlan_frames"), ""},
			{"a pause frame", far, pause, 1, also(carriedBy("received", 1, 60), 1, "ethernet.control_frames", "adapter_traffic.control_packets"),
				"switch"},
			{"a control frame of an unknown kind", far, unknown, 1, also(carriedBy("received", 1, 60), 1, "ethernet.control_frames",
				"adapter_traffic.control_packets", "port_traffic.received_unsupported_opcode_packets"), "switch"},
			{"too short to send", near, []byte("short"), 1, map[string]uint64{"ethernet.refused_sends": 1,
				"adapter_traffic.outbound_error_packets": 1, dropped: 1}, ""},
			{"too long to send", near, long(near.frame(far.mac, "x"), 9015), 1, map[string]uint64{"ethernet.refused_sends": 1,
				"adapter_traffic.outbound_error_packets": 1, dropped: 1}, ""},
			{"sent", near, long(near.frame(far.mac, "x"), 500), 2, hosted("sent", 2, 1000, "unicast"), ""},
			{"sent short", near, near.frame(far.mac, "x")[:40], 2, hosted("sent", 2, 120, "unicast"), ""}, // filled up
			{"sent to a group", near, long(near.frame(group, "x"), 500), 2, hosted("sent", 2, 1000, "multicast"), ""},
			{"sent to everybody", near, long(near.frame(eth.Broadcast, "x"), 9014), 1, hosted("sent", 1, 9014, "multicast"), ""},
			{"sent in a VLAN", near, tagged(long(near.frame(far.mac, "x"), 500), 9), 1, hosted("sent", 1, 504, "unicast"), ""},
			{"with its own address", far, own, 1, also(carriedBy("received", 1, 64), 1, "ethernet.dropped_own_frames"), ""},
		} {
			if c.name == "with its own address" && w.wire == "switch" {
				continue // the switch would think that it is there
			}
			t.Run(c.name, func(t *testing.T) {
				if c.not == w.wire { // the next frame that does has come after it
					c.want = hosted("received", 1, 60, "unicast")
				}
				diff := ""
				if !await.Until(func() bool { // once more if a frame of before comes between: one that was sent again since it was late
					before := snapshot(t, d)
					for range c.times {
						c.from.send(t, c.frame)
					}
					if c.not == w.wire {
						far.send(t, plain(near.mac, 60))
					}
					return soon(func() bool { diff = cmp.Diff(c.want, counted(t, d, before)); return diff == "" })
				}) {
					t.Errorf("counted otherwise than wanted (-):\n%s", diff)
				}
			})
		}
		t.Run("too long", func(t *testing.T) {
			set(t, d, "near", "*JumboPacket", "1514")
			restart(t, d, "near")
			want := also(carriedBy("received", 1, 2000), 1, "ethernet.dropped_long_frames", "adapter_traffic.received_error_packets",
				"adapter_traffic.received_frame_length_error_packets", "port_traffic.received_too_long_packets")
			diff := ""
			if !await.Until(func() bool { // once more, too
				before := snapshot(t, d)
				far.send(t, plain(near.mac, 2000))
				return soon(func() bool { diff = cmp.Diff(want, counted(t, d, before)); return diff == "" })
			}) {
				t.Errorf("counted otherwise than wanted (-):\n%s", diff)
			}
		})
		if w.wire != "switch" {
			const want = "DuplicateMAC: near: somebody else on the wire sends with the adapter's address, 02:00:00:00:00:01."
			await.Eventually(t, "an event of the duplicate address", func() bool { return slices.Contains(raised(t, d), want) })
		}
	})
}
