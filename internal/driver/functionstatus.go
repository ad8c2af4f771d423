package driver

import (
	"maps"
	"net"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// Functions returns the virtual functions of all adapters.
func (d *Driver) Functions() []api.FunctionStatus {
	out := []api.FunctionStatus{}
	for i := range d.running {
		out = append(out, d.functionStatus(uint32(i))...)
	}
	return out
}

// sriovStatus returns what SR-IOV's configuration grants adapter i. The caller holds changes.
func (d *Driver) sriovStatus(i uint32) *api.SRIOVStatus {
	g := d.grants(int(i))
	s := &api.SRIOVStatus{Support: g.Support.String(), Cause: g.Cause, Granted: g.VFs, Requested: g.Requested}
	if !d.infiniBand(int(i)) {
		d.showSwitch(i, s)
	}
	return s
}

// functionStatus returns the virtual functions of adapter i.
func (d *Driver) functionStatus(i uint32) (out []api.FunctionStatus) {
	list := d.functions.of(i)
	if len(list) == 0 {
		return nil
	}
	now, hosts := map[string]device.FunctionStatus{}, map[string]*device.EthernetStatus{}
	for _, f := range d.host.Functions(i) {
		now[f.Name] = f
		hosts[f.Name] = d.host.Ethernet(f.Info.Index)
	}
	faces := map[string][]api.IPoIBStatus{}
	for _, c := range d.functionConnections(int(i)) {
		faces[c.function] = append(faces[c.function], d.connectionStatus(int(i), &c))
	}
	port := d.portStatus(int(i))
	d.functions.mu.Lock()
	defer d.functions.mu.Unlock()
	for _, f := range list {
		v := &f.cfg.Virtual
		s := api.FunctionStatus{
			Name: f.cfg.Name, Adapter: d.running[i].Name, ByKeys: f.byKeys, MAC: net.HardwareAddr(f.cfg.MAC[:]).String(), VLAN: f.cfg.VLAN,
			VLANs: v.VLANs.String(), VSID: v.VSID,
			Address: f.cfg.Addr.String(), Link: linkPolicies[v.Link], Max: mbits(v.Share.Most), Min: mbits(v.Share.Least),
			NoRDMA: v.NoRDMA, Trust: v.Trust, Group: f.group,
			TAP: f.host.tap(), NetNS: f.host.space, Visible: visibility(f.alone), Host: f.host.word(), HostPeer: f.host.remote(),
			QueuesRequested: f.queues, Counters: map[string]uint64{},
		}
		if d.infiniBand(int(i)) {
			o := now[f.cfg.Name]
			showFabric(&s, &f.cfg, &o, port)
			s.IPoIB = faces[f.cfg.Name]
		}
		if f.end != nil && f.end.place == f.host {
			s.HostState = f.end.state()
		}
		if f.close != nil {
			if s.Socket = paths.Function(d.cfg.Socket, f.cfg.Name); d.cfg.Containers != nil {
				s.ContainerSocket = paths.FunctionContainer(d.cfg.Socket, f.cfg.Name)
			}
		}
		if o, ok := now[f.cfg.Name]; ok {
			s.GUID = o.Info.GUID
			s.Number, s.Up, s.Programs, s.QPs = o.Number, o.Up, o.Programs, o.Objects.QP
			maps.Copy(s.Counters, functionCounters(&o))
			if e := hosts[f.cfg.Name]; e != nil {
				s.Rings, s.VMQ = rings(e), d.queueStatus(i, f.cfg.Name)
				s.Counters["host_lost"], s.Counters["host_dropped"] = hostLosses(e)
			}
			s.Counters["fw_cpu_usage_us"], s.Counters["errors2fw"] = d.functionWatch.spent(i, o.Number)
		}
		out = append(out, s)
	}
	return out
}

// hostLosses are the frames that a host did not get: those that nobody was there for, and those that it did not read in time.
func hostLosses(e *device.EthernetStatus) (lost, dropped uint64) {
	for i := range e.Queues {
		dropped += e.Queues[i].Receive.NoBuffer
	}
	return e.Side.Lost, dropped
}

// functionCounters returns the counters of a virtual function: its frames and bytes by the wire and inside the port, what it tried to
// send in others' names, and those of its RDMA function.
func functionCounters(f *device.FunctionStatus) map[string]uint64 {
	w, in, dropped := f.Frames.Wire, f.Frames.Inside, &f.Switch.Dropped
	out := map[string]uint64{
		"sent_frames": w.SentFrames + in.SentFrames, "sent_bytes": w.SentBytes + in.SentBytes,
		"received_frames": w.ReceivedFrames + in.ReceivedFrames, "received_bytes": w.ReceivedBytes + in.ReceivedBytes,
		"inside_sent_bytes": in.SentBytes, "inside_received_bytes": in.ReceivedBytes,
		"spoofed_mac": dropped[eswitch.SourceMAC], "spoofed_ethertype": dropped[eswitch.EtherType], "spoofed_gid": f.Forged,
		"wrong_vlan": dropped[eswitch.WrongVLAN], "redirected_dhcp": f.Switch.Redirected,
		"blocked_sent": dropped[eswitch.Blocked], "blocked_received": f.Switch.Held,
	}
	for _, c := range f.Counters {
		out[counterName(c)] = c.Value
	}
	return out
}

// functionWords returns the virtual functions of adapter i with their counters.
func (d *Driver) functionWords(i uint32) (list []collector.Function) {
	for _, f := range d.functionStatus(i) {
		c := f.Counters
		v := map[string]uint64{"programs": uint64(f.Programs), "queue_pairs": uint64(f.QPs), "firmware_cpu_seconds": c["fw_cpu_usage_us"],
			"firmware_errors": c["errors2fw"], "spoofed_frames": c["spoofed_mac"] + c["spoofed_ethertype"] + c["spoofed_gid"],
			"up": 0, "local_sent_bytes": c["Local outbound bytes"], "local_received_bytes": c["Local inbound bytes"]}
		if f.Up {
			v["up"] = 1
		}
		if q := f.VMQ; q != nil {
			v["queue_number"], v["queue_packets"], v["queue_bytes"], v["queue_dropped"] = uint64(q.Number), q.Packets, q.Bytes, q.Dropped
		}
		for _, same := range []string{"sent_bytes", "sent_frames", "received_bytes", "received_frames", "inside_sent_bytes",
			"inside_received_bytes", "spoofed_mac", "spoofed_ethertype", "spoofed_gid", "wrong_vlan", "redirected_dhcp", "blocked_sent", "blocked_received"} {
			v[same] = c[same]
		}
		list = append(list, collector.Function{Name: f.Name, Values: v})
	}
	return list
}
