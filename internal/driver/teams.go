package driver

import (
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/teams"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/registry"
)

var _ api.TeamSource = (*Driver)(nil)

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

// Wake implements teams.Driver.
func (t teamDriver) Wake() { t.d.host.Wake() }

// Rewire implements teams.Driver.
func (t teamDriver) Rewire(adapters []int) error { return t.d.rewire(adapters) }

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
