package mlxtool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

func (r *run) ports() (report, error) {
	if err := r.noMore(r.args); err != nil {
		return nil, err
	}
	if err := r.status(); err != nil {
		return nil, err
	}
	t := table{Fields: []string{"Interface Name", "Port", "Type", "State", "Speed", "RoCE", "Address", "MTU", "Location"}, Empty: "no ports"}
	for _, a := range r.all() {
		if a.InfiniBand == nil {
			t.add(a.Name, a.Port, "Ethernet", portState(a), portSpeed(a), a.RoCE, address(a), a.LinkMTU, a.Location().Text())
			continue
		}
		for i := range a.IPoIB {
			x := &a.IPoIB[i]
			ip, state := notKnown, "Disconnected"
			if x.IName == "" {
				ip = address(a)
			}
			rate := gigabits(0)
			if x.Connected {
				state, rate = "Up", gigabits(a.InfiniBand.Mbps*1e6)
			}
			t.add(x.Connection, a.Port, "IPoIB", state, rate, notKnown, ip, x.MTU, a.Location().Text())
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
	for _, d := range r.driver.Devices() {
		l := d.Location()
		t.add(d.Name, d.First().Generation, l.Bus, l.Device, l.Function, len(d.Ports), fmt.Sprintf("%016x", d.NodeGUID), statesOf(d.Ports))
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
	for _, d := range list {
		rdma := slices.ContainsFunc(d.Ports, (*api.AdapterStatus).RDMA)
		pending := slices.ContainsFunc(d.Ports, func(a *api.AdapterStatus) bool { return a.Pending })
		t.add(d.Name, d.Location().Text(), statesOf(d.Ports), rdma, pending)
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

// statesOf returns the state of a device, if its ports have the same, or those of its ports.
func statesOf(ports []*api.AdapterStatus) string {
	var all []string
	for _, a := range ports {
		if s := deviceState(a); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	all = nil
	for _, a := range ports {
		all = append(all, fmt.Sprintf("port %d %s", a.Port, deviceState(a)))
	}
	return strings.Join(all, ", ")
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

// portSpeed returns the speed of an Ethernet port's link.
func portSpeed(a *api.AdapterStatus) any {
	if a.Up && a.Enabled && a.Speed == 0 {
		return notKnown
	}
	return gigabits(a.Speed)
}

// gigabits formats a speed in bit/s.
func gigabits(speed uint64) string {
	return strconv.FormatFloat(float64(speed)/1e9, 'f', -1, 64) + " Gb/s"
}

func address(a *api.AdapterStatus) any {
	if len(a.Addresses) == 0 {
		return notKnown
	}
	return a.Addresses[0].String()
}
