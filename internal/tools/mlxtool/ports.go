package mlxtool

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

func (r *run) ports() (report, error) {
	if err := r.noMore(r.args); err != nil {
		return nil, err
	}
	if err := r.status(); err != nil {
		return nil, err
	}
	t := table{Fields: []string{"Interface Name", "Port", "Type", "State", "RoCE", "Address", "MTU", "Location"}, Empty: "no ports"}
	for _, a := range r.all() {
		if a.InfiniBand == nil {
			t.add(a.Name, 1, "Ethernet", portState(a), a.RoCE, address(a), a.LinkMTU, a.Location().Text())
			continue
		}
		for i := range a.IPoIB {
			x := &a.IPoIB[i]
			ip, state := notKnown, "Disconnected"
			if x.IName == "" {
				ip = address(a)
			}
			if x.Connected {
				state = "Up"
			}
			t.add(x.Connection, 1, "IPoIB", state, notKnown, ip, x.MTU, a.Location().Text())
		}
	}
	return report{t}, nil
}

func (r *run) devices() (report, error) {
	if err := r.noMore(r.args); err != nil {
		return nil, err
	}
	if err := r.status(); err != nil {
		return nil, err
	}
	t := table{Fields: []string{"Device", "Generation", "Bus", "Device Number", "Function", "Ports", "GUID", "State"}, Empty: "no devices"}
	for _, a := range r.all() {
		l := a.Location()
		t.add(a.Name, a.Generation, l.Bus, l.Device, l.Function, 1, fmt.Sprintf("%016x", a.GUID), deviceState(a))
	}
	return report{t}, nil
}

func (r *run) states() (report, error) {
	list, rest, err := r.locations(true)
	if err == nil {
		err = r.noMore(rest)
	}
	if err != nil {
		return nil, err
	}
	t := table{Fields: []string{"Device", "Location", "State", "RDMA", "Restart needed"}}
	for _, a := range list {
		t.add(a.Name, a.Location().Text(), deviceState(a), a.RoCE != "none", a.Pending)
	}
	return report{t}, nil
}

func (r *run) restart() (report, error) {
	a, rest, err := r.one()
	if err == nil {
		err = r.noMore(rest)
	}
	if err != nil {
		return nil, err
	}
	if err := r.client.RestartAdapter(r.ctx, a.Name); err != nil {
		return nil, err
	}
	t := table{Fields: []string{"Interface Name", "Action", "State"}}
	return r.after(t, a.Name, "restarted")
}

// after adds a row with the present state of an adapter that was changed.
func (r *run) after(t table, name, action string) (report, error) {
	if err := r.status(); err != nil {
		return nil, err
	}
	a, err := r.named(name)
	if err != nil {
		return nil, err
	}
	t.add(a.Name, action, deviceState(a))
	return report{t}, nil
}

func deviceState(a *api.AdapterStatus) string {
	if !a.Enabled {
		return "Disabled"
	}
	return "Operational"
}

func portState(a *api.AdapterStatus) string {
	if a.Up {
		return "Up"
	}
	return "Down"
}

func address(a *api.AdapterStatus) any {
	if len(a.Addresses) == 0 {
		return notKnown
	}
	return a.Addresses[0].String()
}
