package mlxtool

import (
	"fmt"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

func (r *run) reset() (report, error) {
	a, err := r.device()
	if err != nil {
		return nil, err
	}
	if err := r.client.ResetAdapter(r.ctx, a.Name); err != nil {
		return nil, err
	}
	return r.after(table{Fields: []string{"Device", "Action", "State"}}, a.Name, "reset")
}

func (r *run) stateDump() (report, error) {
	a, d, err := r.dump(api.StateDump)
	if err != nil {
		return nil, err
	}
	return report{dumped(a, d, table{Fields: []string{"Directory", "Index", "Files"}}, d.Directory, d.Number, len(d.Files))}, nil
}

func (r *run) dumpMeNow() (report, error) {
	a, d, err := r.dump(api.DumpMeNow)
	if err != nil {
		return nil, err
	}
	return report{dumped(a, d, table{Fields: []string{"Folder", "Files"}}, d.Directory, len(d.Files))}, nil
}

func (r *run) dump(kind api.DumpKind) (*api.AdapterStatus, api.Dump, error) {
	a, err := r.device()
	if err != nil {
		return nil, api.Dump{}, err
	}
	d, err := r.client.Dump(r.ctx, a.Name, kind)
	return a, d, err
}

// dumped returns the table of a dump.
func dumped(a *api.AdapterStatus, d api.Dump, t table, values ...any) table {
	t.Label, t.Name = "Device", a.Name
	t.Fields = append(t.Fields, "File")
	for _, f := range d.Files {
		t.add(append(append([]any{}, values...), f)...)
	}
	return t
}

// commandStats shows the commands given by programs, in milliseconds.
func (r *run) commandStats() (report, error) {
	a, err := r.device()
	if err != nil {
		return nil, err
	}
	list, err := r.client.Commands(r.ctx, a.Name)
	if err != nil {
		return nil, err
	}
	return report{calls("Device", a.Name, "Command", "ms", time.Millisecond, list, "no commands")}, nil
}

// requestStats shows the driver's requests about interfaces, in microseconds.
func (r *run) requestStats() (report, error) {
	return r.perInterface(func(a *api.AdapterStatus) (table, error) {
		stats, err := r.client.Requests(r.ctx, a.Name)
		return calls("Interface", a.Name, "OID", "us", time.Microsecond, stats, "no requests"), err
	})
}

func calls(label, name, what, unit string, in time.Duration, list []api.CallStats, empty string) table {
	t := table{Label: label, Name: name, Fields: []string{what, "Count", "Failed", "Total " + unit, "Average " + unit, "Longest " + unit}, Empty: empty}
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
	return tables(list, func(a *api.AdapterStatus) (table, error) {
		have, err := r.client.Resources(r.ctx, a.Name)
		if err != nil {
			return table{}, err
		}
		t := table{Label: "Device", Name: a.Name, Fields: []string{"Resource", "Allocated", "Max"}}
		for _, kind := range []string{"QP", "CQ", "SRQ", "MPT", "MTT", "FS_RULE"} {
			used, most := notKnown, notKnown
			for _, o := range have.Objects {
				if o.Name == kind {
					used, most = o.Used, o.Max
				}
			}
			t.add(kind, used, most)
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
		if n, err := strconv.Atoi(rest[0]); err != nil || n != 1 {
			return nil, r.usagef("port is %q, and the device has port 1", rest[0])
		}
		if err := r.noMore(rest[1:]); err != nil {
			return nil, err
		}
	}
	return tables(list, func(a *api.AdapterStatus) (table, error) {
		t := table{Label: "Device", Name: a.Name, Fields: []string{"Port", "Link", "Status", "Times down", "Receive errors", "Impairment"}}
		impairment := notKnown
		if a.Impairment != "" {
			impairment = a.Impairment
		}
		t.add(1, portState(a), reason(a), a.Counters["Link down events"], a.Counters["ICRC errors"]+a.Counters["Malformed frames"], impairment)
		return t, nil
	})
}

// reason explains the state of an adapter's link.
func reason(a *api.AdapterStatus) string {
	switch {
	case !a.Enabled:
		return "The adapter is disabled"
	case a.RoCE == "none":
		return "RDMA is off (roce_mode 4)"
	case !a.Up:
		return "No interface has the address of the port"
	}
	return "No issue was found"
}
