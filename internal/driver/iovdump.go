package driver

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/dump"
)

// functionsFile is the type of the file with virtual functions.
const functionsFile = "iov"

// functionFile returns the file of a dump-me-now folder about the virtual functions at the ports of a device, as DmnIovMode has it (WinOF
// 5.50, 4.7.2: "IOV objects state in case of SR-IOV-Setup"). None: it has none, or they are not to be in it. WinOF-2 has no such key.
func (d *Driver) functionFile(r *running, at config.Slot) []dump.File {
	if r.Generation != catalogue.MLX4 {
		return nil
	}
	detail := dump.Detail(d.now(r, "DmnIovMode"))
	if detail == dump.NoFunctions {
		return nil
	}
	var list []dump.Function
	for _, i := range d.portsOf(at) {
		live := d.functions.live(i)
		for _, s := range d.functionStatus(i) {
			f := dump.Function{Adapter: s.Adapter, Number: s.Number, Name: s.Name, State: stateWords(&s)}
			if index, ok := live[s.Name]; ok {
				f.Inspect = func(most int) (device.Inspection, error) { return d.host.Inspect(index, most) }
			}
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []dump.File{{Type: functionsFile, Text: dump.Functions(time.Now(), detail, list)}}
}

// stateWords says what of a virtual function is set, and how it is.
func stateWords(s *api.FunctionStatus) string {
	return fmt.Sprintf("up %v mac %s vlan %d vlans %q address %s link %s trust %v by_keys %v programs %d qps %d sent_frames %d received_frames %d "+
		"spoofed_mac %d fw_cpu_usage_us %d errors2fw %d", s.Up, s.MAC, s.VLAN, s.VLANs, s.Address, s.Link, s.Trust, s.ByKeys, s.Programs, s.QPs,
		s.Counters["sent_frames"], s.Counters["received_frames"], s.Counters["spoofed_mac"], s.Counters["fw_cpu_usage_us"],
		s.Counters["errors2fw"])
}

// live returns the indices of the device's functions at the port of an adapter, by their names.
func (s *functions) live(owner uint32) map[string]uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := map[string]uint32{}
	for _, f := range s.list {
		if f.cfg.Owner == owner && f.live {
			at[f.cfg.Name] = f.index
		}
	}
	return at
}
