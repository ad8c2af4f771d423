package mlxtool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

func (r *run) reset() (report, error) {
	d, err := r.device()
	if err != nil {
		return nil, err
	}
	for _, a := range d.Ports {
		if err := r.client.ResetAdapter(r.ctx, a.Name); err != nil {
			return nil, err
		}
	}
	if d, err = r.device(); err != nil { // as it is now
		return nil, err
	}
	t := table{Fields: []string{"Device", "Action", "State"}}
	t.add(d.Name, "reset", statesOf(d.Ports))
	return report{t}, nil
}

func (r *run) stateDump() (report, error) {
	x, d, err := r.dump(api.StateDump)
	if err != nil {
		return nil, err
	}
	return report{dumped(x, d, table{Fields: []string{"Directory", "Index", "Files"}}, d.Directory, d.Number, len(d.Files))}, nil
}

func (r *run) dumpMeNow() (report, error) {
	x, d, err := r.dump(api.DumpMeNow)
	if err != nil {
		return nil, err
	}
	return report{dumped(x, d, table{Fields: []string{"Folder", "Files"}}, d.Directory, len(d.Files))}, nil
}

func (r *run) dump(kind api.DumpKind) (api.Device, api.Dump, error) {
	x, err := r.device()
	if err != nil {
		return x, api.Dump{}, err
	}
	d, err := r.client.Dump(r.ctx, x.First().Name, api.DumpRequest{Kind: kind})
	return x, d, err
}

// dumped returns the table of a dump.
func dumped(x api.Device, d api.Dump, t table, values ...any) table {
	t.Label, t.Name = "Device", x.Name
	t.Fields = append(t.Fields, "File")
	for _, f := range d.Files {
		t.add(append(append([]any{}, values...), f)...)
	}
	return t
}

// commandStats shows the commands given by programs, in milliseconds.
func (r *run) commandStats() (report, error) {
	d, err := r.device()
	if err != nil {
		return nil, err
	}
	var all []api.CallStats
	for _, a := range d.Ports {
		list, err := r.client.Commands(r.ctx, a.Name)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			all = addCalls(all, s)
		}
	}
	return report{calls("Device", d.Name, "Command", "ms", time.Millisecond, all, "no commands")}, nil
}

// addCalls adds the calls of one name to a list.
func addCalls(all []api.CallStats, s api.CallStats) []api.CallStats {
	i := slices.IndexFunc(all, func(x api.CallStats) bool { return x.Name == s.Name })
	if i < 0 {
		return append(all, s)
	}
	x := &all[i]
	x.Count, x.Failed, x.Total, x.Longest = x.Count+s.Count, x.Failed+s.Failed, x.Total+s.Total, max(x.Longest, s.Longest)
	return all
}

// requestStats shows the driver's requests about interfaces, in microseconds.
func (r *run) requestStats() (report, error) {
	return r.perInterface(func(a *api.AdapterStatus) (table, error) {
		stats, err := r.client.Requests(r.ctx, a.Name)
		return calls("Interface", a.Name, "OID", "us", time.Microsecond, stats, "no requests"), err
	})
}

func calls(label, name, what, unit string, in time.Duration, list []api.CallStats, empty string) table {
	t := table{Label: label, Name: name, Fields: []string{what, "Count", "Failed", "Total " + unit, "Average " + unit, "Longest " + unit},
		Empty: empty}
	times := func(d time.Duration) float64 { return float64(d) / float64(in) }
	for _, s := range list {
		t.add(s.Name, s.Count, s.Failed, times(s.Total), times(s.Total)/float64(max(s.Count, 1)), times(s.Longest))
	}
	return t
}

// partitionKeys shows what is set in the partition tables of the ports: those of IPoIB, and of RoCE.
func (r *run) partitionKeys() (report, error) {
	return r.perInterface(func(a *api.AdapterStatus) (table, error) {
		have, err := r.client.Resources(r.ctx, a.Name)
		if err != nil {
			return table{}, err
		}
		label := "SoftVPI RoCE NIC"
		if a.InfiniBand != nil {
			label = "SoftVPI IPoIB NIC"
		}
		t := table{Label: label, Name: a.Name, Fields: []string{"PKEY index", "PKEY"}}
		for i, k := range have.PKeys {
			if k != 0 {
				t.add(i, fmt.Sprintf("%04x", k))
			}
		}
		return t, nil
	})
}

// resources shows how many objects there are. The manual's table has two kinds that a software adapter
// does not have: translation entries, because memory is accessed by its address, and steering rules.
func (r *run) resources() (report, error) {
	list, rest, err := r.locations(true)
	if err == nil {
		err = r.noMore(rest)
	}
	if err != nil {
		return nil, err
	}
	return tables(list, func(d api.Device) (table, error) {
		used, most := map[string]int{}, map[string]uint64{}
		for _, a := range d.Ports {
			have, err := r.client.Resources(r.ctx, a.Name)
			if err != nil {
				return table{}, err
			}
			for _, o := range have.Objects {
				used[o.Name], most[o.Name] = used[o.Name]+o.Used, most[o.Name]+o.Max
			}
		}
		t := table{Label: "Device", Name: d.Name, Fields: []string{"Resource", "Allocated", "Max"}}
		for _, kind := range []string{"QP", "CQ", "SRQ", "MPT", "MTT", "FS_RULE"} {
			if n, ok := used[kind]; ok {
				t.add(kind, n, most[kind])
			} else {
				t.add(kind, notKnown, notKnown)
			}
		}
		return t, nil
	})
}

// portDiagnostics says why a link is down.
func (r *run) portDiagnostics() (report, error) {
	list, rest, err := r.locations(true)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		d := &list[0]
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 1 || n > len(d.Ports) {
			return nil, r.usagef("port is %q, and the device has %s", rest[0], portsOf(*d))
		}
		if err := r.noMore(rest[1:]); err != nil {
			return nil, err
		}
		d.Ports = d.Ports[n-1 : n]
	}
	return tables(list, func(d api.Device) (table, error) {
		t := table{Label: "Device", Name: d.Name, Fields: []string{"Port", "Link", "Status", "Times down", "Receive errors", "Impairment"}}
		for _, a := range d.Ports {
			impairment := notKnown
			if a.Impairment != "" {
				impairment = a.Impairment
			}
			t.add(a.Port, portState(a), reason(a), a.Counters["Link down events"], a.Counters["ICRC errors"]+a.Counters["Malformed frames"],
				impairment)
		}
		return t, nil
	})
}

// portsOf names the ports of a device: "port 1", "ports 1 and 2".
func portsOf(d api.Device) string {
	if len(d.Ports) == 1 {
		return "port 1"
	}
	return fmt.Sprintf("ports 1 and %d", len(d.Ports))
}

// reason explains the state of an adapter's link.
func reason(a *api.AdapterStatus) string {
	switch {
	case !a.Enabled:
		return "The adapter is disabled"
	case a.RoCE == "none":
		return "RDMA is off (roce_mode 4)"
	case !a.Up && (a.Wire == "" || strings.HasPrefix(a.Wire, "UDP")):
		return "No interface has the address of the port, or it is down"
	case !a.Up:
		return "The wire is down: " + a.Wire
	}
	return "No issue was found"
}
