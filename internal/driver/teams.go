package driver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/teams"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/registry"
)

var _ apiserver.TeamSource = (*Driver)(nil)

// openTeams makes the teams again that are kept. It is called before there are adapters.
func (d *Driver) openTeams() {
	d.Roster = teams.New(teams.Config{Driver: teamDriver{d}, Adapters: d.cfg.Adapters, Registry: d.registry, Events: d.events, Log: d.log,
		Changes: &d.changes})
}

// teamDriver is what teams need of the driver.
type teamDriver struct{ d *Driver }

// Adapter implements teams.Driver.
func (t teamDriver) Adapter(i int) registry.Adapter { return t.d.running[i].known() }

// Named implements teams.Driver.
func (t teamDriver) Named(name string) (int, error) { return t.d.adapterNamed(name) }

// InfiniBand implements teams.Driver.
func (t teamDriver) InfiniBand(i int) bool { return t.d.infiniBand(i) }

// Functions implements teams.Driver.
func (t teamDriver) Functions(i int) int { return len(t.d.functions.of(uint32(i))) }

// VLANs implements teams.Driver.
func (t teamDriver) VLANs(owner string) (names []string) {
	for _, v := range t.d.vlansOf(owner) {
		names = append(names, v.Name)
	}
	return names
}

// OpenWire implements teams.Driver.
func (t teamDriver) OpenWire(a *config.Adapter, udpPort uint16) (link.Link, error) {
	return t.d.openWire(a, udpPort)
}

// Clash implements teams.Driver.
func (t teamDriver) Clash(carrier int, members []int, mac [6]byte) error {
	d := t.d
	type station struct {
		mac  [6]byte
		vlan uint16
	}
	has := map[station]string{}
	take := func(mac [6]byte, vlan uint16, who string) error {
		if o := has[station{mac, vlan}]; o != "" {
			return api.Wrong("MAC", fmt.Sprintf("%s, of %s and of %s", net.HardwareAddr(mac[:]), o, who), "another MAC for each that stands on the team")
		}
		has[station{mac, vlan}] = who
		return nil
	}
	err := take(mac, d.cfg.Adapters[carrier].VLAN, "the team")
	for _, i := range append(d.beside(append(slices.Clone(members), carrier)), carrier) {
		if i != carrier {
			a := &d.cfg.Adapters[i]
			err = errors.Join(err, take(a.StationMAC(), a.VLAN, "adapter "+strconv.Quote(a.Name)))
		}
		for _, f := range d.functions.of(uint32(i)) {
			err = errors.Join(err, take(f.cfg.MAC, f.cfg.VLAN, "virtual function "+strconv.Quote(f.cfg.Name)))
		}
	}
	return err
}

// Beside implements teams.Driver.
func (t teamDriver) Beside(members []int) (names []string) {
	for _, i := range t.d.beside(members) {
		names = append(names, t.d.running[i].Name)
	}
	return names
}

// beside returns the adapters that share the wires of others.
func (d *Driver) beside(members []int) (list []int) {
	for i := range d.cfg.Adapters {
		if first := d.cfg.FirstOnWire(i); first != i && slices.Contains(members, first) {
			list = append(list, i)
		}
	}
	return list
}

// standsAt returns the adapter at whose port adapter i is, unless it is idle: itself, the first on its wire, or, if a team has that wire,
// who carries the team.
func (d *Driver) standsAt(i int) int {
	first := d.cfg.FirstOnWire(i)
	if t, _ := d.Roster.Of(first); t != nil && i != first {
		return d.Roster.Carrier(t)
	}
	return first
}

// Wake implements teams.Driver.
func (t teamDriver) Wake() { t.d.host.Wake() }

// ChangeWire implements teams.Driver.
func (t teamDriver) ChangeWire(change func() error) error { return t.d.host.ChangeWire(change) }

// Park implements teams.Driver.
func (t teamDriver) Park(members []int) error { return t.d.parkAll(members) }

// Unpark implements teams.Driver.
func (t teamDriver) Unpark(members []int) error { return t.d.unparkAll(members) }

// JoinIPoIB implements teams.Driver.
func (t teamDriver) JoinIPoIB(guid string, carrier int, members, former []int, cfg service.TeamConfig) (*service.Team, error) {
	return t.d.ipoib.setTeam(guid, carrier, members, former, cfg)
}

// AttachIPoIB implements teams.Driver.
func (t teamDriver) AttachIPoIB(guid string, i int, primary bool) error {
	return t.d.ipoib.attach(guid, i, primary)
}

// DetachIPoIB implements teams.Driver.
func (t teamDriver) DetachIPoIB(guid string, i int) { t.d.ipoib.detach(guid, i) }

// PortSpeed implements teams.Driver.
func (t teamDriver) PortSpeed(i int) uint64 {
	if p := t.d.portStatus(i); p != nil {
		return p.Mbps * 1e6
	}
	return 0
}

// adapterNamed finds an adapter by its GUID, with braces or not, or by its name.
func (d *Driver) adapterNamed(name string) (int, error) {
	id := "{" + strings.Trim(name, "{}") + "}"
	i := slices.IndexFunc(d.running, func(r *running) bool { return strings.EqualFold(r.GUID(), id) || r.Name == name })
	if i >= 0 {
		return i, nil
	}
	var known []string
	for _, r := range d.running {
		known = append(known, r.GUID()+" ("+r.Name+")")
	}
	return 0, api.Wrong("adapter", strconv.Quote(name), "the GUID or name of one: "+strings.Join(known, ", "))
}
