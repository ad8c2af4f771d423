package driver

import "github.com/softvpi/softvpi/internal/counters/collector"

// Counters of what an adapter's port has besides virtual functions. They are read without Driver.changes: whoever holds that may wait
// for a program.

// vlanWords returns the VLAN interfaces at the port of adapter i with their counters.
func (d *Driver) vlanWords(i uint32) (list []collector.VLAN) {
	for _, v := range d.host.VLANs(i) {
		w, in := v.Frames.Wire, v.Frames.Inside
		values := map[string]uint64{
			"sent_bytes": w.SentBytes + in.SentBytes, "sent_frames": w.SentFrames + in.SentFrames,
			"received_bytes": w.ReceivedBytes + in.ReceivedBytes, "received_frames": w.ReceivedFrames + in.ReceivedFrames,
			"id": uint64(v.VLAN), "priority": uint64(v.Priority), "up": 0, "queue_pairs": uint64(v.Objects.QP),
		}
		for _, c := range v.Counters {
			switch counterName(c) {
			case "Local outbound bytes":
				values["local_sent_bytes"] = c.Value
			case "Local inbound bytes":
				values["local_received_bytes"] = c.Value
			}
		}
		if v.Up {
			values["up"] = 1
		}
		list = append(list, collector.VLAN{Name: v.Name, Values: values})
	}
	return list
}

// queueWords returns the counters of the receive queues that adapter i has for virtual ports; nil: its wire has no room for such ports.
func (d *Driver) queueWords(i uint32) map[string]uint64 {
	if a := &d.cfg.Adapters[i]; a.Cable() || !a.WholeFrames() {
		return nil
	}
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	q := d.queues.of[i]
	if q == nil {
		return nil
	}
	c, limits := queueCounters(q.standard), q.Config()
	queues, macs, vlans := q.Used()
	sharing := 0
	for _, p := range q.ports {
		if p.number == 0 {
			sharing++
		}
	}
	return map[string]uint64{
		"default_packets": c.Packets, "default_bytes": c.Bytes, "default_dropped": c.Dropped, "sharing_ports": uint64(sharing),
		"queues": uint64(limits.Queues), "used_queues": uint64(queues), "mac_filters": uint64(limits.MACs), "used_mac_filters": uint64(macs),
		"vlan_filters": uint64(limits.VLANs), "used_vlan_filters": uint64(vlans),
	}
}
