package mlx5cmd

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
)

const (
	vendorID = 0x02c9
	// maxMTU is the maximum payload of a packet (IBA 9.2).
	maxMTU = 4096
)

// each creates a block for each requested adapter.
func (r *run) each(title string, fill func(*block, *api.AdapterStatus) error) (report, error) {
	list, err := r.adapters()
	if err != nil {
		return nil, err
	}
	var out blocks
	for _, a := range list {
		b := block{title: fmt.Sprintf(title+" %q", a.Name), adapter: a.Name}
		if err := fill(&b, a); err != nil {
			return nil, err
		}
		out.list = append(out.list, b)
	}
	if len(out.list) == 0 {
		out.notes = []string{"There is no mlx5 adapter."}
	}
	return out, nil
}

func (r *run) stat() (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	return r.each("Adapter", func(b *block, a *api.AdapterStatus) error {
		state, uplink := "PORT_DOWN (1)", "Ethernet"
		if a.InfiniBand != nil {
			uplink = "InfiniBand"
		}
		if a.Enabled && a.Up {
			state = "PORT_ACTIVE (4)"
		}
		for _, f := range []field{
			{"hca_idx", r.deviceIndex(a)}, {"uplink", uplink}, {"fw_ver", a.Firmware.Version}, {"board_id", a.Firmware.PSID}, {"driver_ver", r.driver.Version},
			{"vendor_id", fmt.Sprintf("0x%04x", vendorID)}, {"vendor_part_id", a.Class().PartID()}, {"hw_ver", "0x0"},
			{"node_guid", fmt.Sprintf("%016x", a.NodeGUID)}, {"location", a.Location().Text()}, {"num_phys_ports", a.Ports},
			{"port", a.Port},
			{"port_guid", fmt.Sprintf("%016x", a.GUID)}, {"port_state", state}, {"link_speed", speed(a)}, {"max_mtu", maxMTU},
			{"active_mtu", a.ActiveMTU}, {"link_mtu", a.LinkMTU}, {"RoceMode", roceMode(a.RoCE)}, {"roce_udp_dport", a.UDPPort},
			{"NetworkDirect", map[bool]string{true: "disabled", false: "enabled"}[a.NoRDMA]},
			{"restart_pending", a.Pending},
		} {
			b.add(f.name, f.value)
		}
		for i, g := range a.GIDs {
			b.add(fmt.Sprintf("GID[%d]", i), g.GID.String()+", RoCE "+g.RoCE)
		}
		if e := a.Ethernet; e != nil {
			state := "down"
			if e.Up {
				state = "up"
			}
			if e.Up && e.Asleep {
				state = "asleep"
			}
			b.add("mac_address", e.MAC)
			b.add("host", e.Host)
			b.add("host_state", state)
			b.add("host_mtu", e.MTU)
			b.add("receive_queues", e.Queues)
		}
		return nil
	})
}

// deviceIndex returns the number of the device that an adapter is a port of.
func (r *run) deviceIndex(a *api.AdapterStatus) int {
	return slices.IndexFunc(r.driver.Devices(), func(d api.Device) bool { return d.First().Name == a.Device })
}

// roceMode returns a mode as the original tool names it.
func roceMode(mode string) string {
	if mode == "" || mode == "none" {
		return "No RoCE"
	}
	return "RoCE " + mode
}

// speed returns the speed of a link, if it is known.
func speed(a *api.AdapterStatus) string {
	if !a.Enabled || !a.Up {
		return "0.00 Gbps"
	}
	n := a.Speed
	if a.InfiniBand != nil {
		n = a.InfiniBand.Mbps * 1e6
	}
	if n > 0 {
		return strconv.FormatFloat(float64(n)/1e9, 'f', 2, 64) + " Gbps"
	}
	return "unknown"
}

func (r *run) version() (report, error) {
	if err := r.only("Name=", "PF"); err != nil {
		return nil, err
	}
	return r.each("Driver version of adapter", func(b *block, _ *api.AdapterStatus) error {
		b.add("PF", runtime.GOOS+",SoftVPI,"+r.driver.Version)
		return nil
	})
}

// shownKey is a registry key with the details of its value.
type shownKey struct {
	Value   string  `json:"value"`
	Default string  `json:"default"`
	Stored  *string `json:"stored"`
	Effect  string  `json:"effect"`
	Status  string  `json:"status"`
	Pending bool    `json:"pending"`
}

func (k shownKey) String() string {
	text := k.Value + " (default " + k.Default + ", " + k.Effect
	if k.Status != "built" {
		text += ", " + k.Status
	}
	if k.Pending && k.Stored != nil {
		text += ", from the next restart on " + *k.Stored
	} else if k.Pending {
		text += ", from the next restart on the default"
	}
	return text + ")"
}

func (r *run) keys() (report, error) {
	if err := r.only("Name=", "DynamicKeys"); err != nil {
		return nil, err
	}
	return r.each("Registry keys of adapter", func(b *block, a *api.AdapterStatus) error {
		list, err := r.client.Settings(r.ctx, a.Name)
		for _, s := range list {
			if r.has("DynamicKeys") && s.Effect != "at once" {
				continue
			}
			b.add(s.Name, shownKey{s.Value, s.Default, s.Stored, s.Effect, s.Status, s.Pending})
		}
		return err
	})
}

// features reports for each table of keys whether its feature is implemented: that is, whether any of the
// keys has an effect.
// The group of keys about the monitoring of virtual functions, and the one that says whether it is on (WinOF-2 24.4, VF Monitoring).
const (
	monitoringGroup = "VF monitoring"
	monitoringKey   = "VfCpuMonEnable"
)

func (r *run) features() (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	list, err := r.adapters()
	if err != nil {
		return nil, err
	}
	var out blocks
	for _, a := range list {
		settings, err := r.client.Settings(r.ctx, a.Name)
		if err != nil {
			return nil, err
		}
		var groups []string
		built, monitored := map[string]bool{}, ""
		for _, s := range settings {
			if _, seen := built[s.Group]; !seen {
				groups = append(groups, s.Group)
			}
			built[s.Group] = built[s.Group] || s.Status == "built"
			if s.Name == monitoringKey {
				monitored = s.Value
			}
		}
		for _, g := range groups {
			b := block{title: fmt.Sprintf("Feature %s of adapter %q", g, a.Name), section: g, adapter: a.Name}
			switch {
			case !built[g]:
				b.fields = []field{{"State", "Disabled"}, {"Reason", "not built"}}
			case !a.Enabled:
				b.fields = []field{{"State", "Disabled"}, {"Reason", "the adapter is disabled"}}
			case g == monitoringGroup && monitored == "0":
				b.fields = []field{{"State", "Disabled"}, {"Reason", monitoringKey + " is 0"}}
			default:
				b.add("State", "Enabled")
			}
			out.list = append(out.list, b)
		}
	}
	return out, nil
}

func (r *run) linkSpeed() (report, error) {
	if err := r.only("Name=", "Query", "Get"); err != nil {
		return nil, err
	}
	if _, err := r.action("Query", "Get"); err != nil {
		return nil, err
	}
	if _, err := r.adapter(); err != nil {
		return nil, err
	}
	return r.each("Link speed of adapter", func(b *block, a *api.AdapterStatus) error {
		b.add("Current", speed(a))
		return nil
	})
}
