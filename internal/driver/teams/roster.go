// Package teams has the teams of a driver: those of its configuration, which are of wires, and those that are made by command (vlan_config;
// WinOF 5.50, 4.1.6), which are of adapters. The wires of all members are the team's. Its carrier, the first member, keeps its address, its
// functions and its host, and they stand on the team; the other members are disabled until they leave. What is changed is kept in the
// registry.
//
// It says what teams are to be, opens their links (internal/link/team; internal/team decides what they do) and tells of them. The lives of
// the adapters are the driver's, which it asks to put them on their wires.
//
// Files: roster has the teams and who is in them, set changes them, open opens their links, status, counted and news tell of them.
package teams

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/link"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

// Driver is what teams need of the driver, which has adapters by their index in the configuration.
type Driver interface {
	// Adapter is what the registry knows of an adapter.
	Adapter(i int) registry.Adapter
	// Named finds an adapter by its GUID, with braces or not, or by its name.
	Named(name string) (int, error)
	// InfiniBand reports whether an adapter's port is one.
	InfiniBand(i int) bool
	// Beside returns the names of the adapters that share the wires of others, and stand on a team with those.
	Beside(members []int) []string
	// Clash refuses a MAC for a team of these members if somebody else who is to stand on it has that too, or two others have one.
	Clash(members []int, mac [6]byte) error
	// Functions is how many virtual functions use an adapter's wire.
	Functions(i int) int
	// VLANs returns the names of the VLAN interfaces of an adapter or a team with this GUID.
	VLANs(owner string) []string
	// OpenWire opens a wire of whole frames with this RoCE v2 port.
	OpenWire(a *config.Adapter, udpPort uint16) (link.Link, error)
	// Wake wakes who drives the wires, when one has something.
	Wake()
	// ChangeWire calls a function that changes the link of a team, while nobody uses that.
	ChangeWire(change func() error) error
	// Park takes members, and those beside them, off their wires, which are free then, and Unpark puts them on the wires that they are to
	// have now that a team has changed.
	Park(members []int) error
	Unpark(members []int) error
}

// Config is what a roster stands on.
type Config struct {
	Driver   Driver
	Adapters []config.Adapter
	Registry *registry.Registry
	Events   *events.Log
	Log      *slog.Logger
	// Changes is held while an adapter or a team is changed.
	Changes sync.Locker
	// Taken reports whether a team of another kind has a name; nil: there are none.
	Taken func(name string) bool
}

// Roster has the teams of a driver. The zero value has none.
type Roster struct {
	cfg        Config
	configured []open  // complete once the adapters are
	made       []*Team // with Changes held
	shown      atomic.Pointer[[]open]
	news       *news
}

// Team is one that was made by command. The holder of Changes has it.
type Team struct {
	registry.Team
	link *linkteam.Link // nil: no adapter stands on it
	// udpPort is that of RoCE v2 with which its wires were opened.
	udpPort uint16
}

// New makes the teams again that the registry keeps. It is called before there are adapters.
func New(cfg Config) *Roster {
	r := &Roster{cfg: cfg}
	for _, kept := range cfg.Registry.Teams() {
		if kept.IPoIB {
			continue // the driver's
		}
		if kind := team.Type(kept.Type); kind < team.AFT || kind > team.SLA {
			cfg.Log.Warn("a team that was made before is not there: its type is unknown", "team", kept.Name, "type", kept.Type)
			continue
		}
		t := &Team{Team: kept}
		for _, i := range r.Present(t) {
			if why := r.noMember(i); why != "" {
				cfg.Log.Warn("an adapter is not in its team any more", "team", kept.Name, "adapter", r.name(i), "cause", why)
				t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(g string) bool { return g == r.guid(i) })
			}
		}
		r.made = append(r.made, t)
	}
	r.follow()
	return r
}

// Close ends what tells of members, once no team's link is open.
func (r *Roster) Close() {
	if r != nil && r.news != nil {
		r.news.close()
	}
}

// All returns the teams that were made by command, for the holder of Changes.
func (r *Roster) All() []*Team { return r.made }

func (r *Roster) name(i int) string { return r.cfg.Adapters[i].Name }

func (r *Roster) guid(i int) string { return r.cfg.Driver.Adapter(i).GUID() }

// noMember says why an adapter can be in no team, whatever others are; empty: it can.
func (r *Roster) noMember(i int) string {
	a := &r.cfg.Adapters[i]
	switch {
	case r.cfg.Driver.InfiniBand(i) || a.Cable():
		return "members of one kind: Ethernet adapters; vlan_config create team AFT NAME IPoIB makes a team of IPoIB interfaces"
	case !a.WholeFrames():
		return `an adapter with a wire of whole frames ("link": "interface", "tap", "switch" or "datagram")`
	case a.Link == config.LinkTeam:
		return "an adapter that does not stand on a team of the configuration"
	case a.Link == config.LinkFabric:
		return "an adapter that is no host of a fabric"
	}
	for j := range i {
		if r.cfg.Adapters[j].SameWire(a) {
			return fmt.Sprintf("%q, which is first on the wire of both; %q stands on the team with it", r.name(j), r.name(i))
		}
	}
	return ""
}

// Present returns the members of a team that the configuration has, in the team's order.
func (r *Roster) Present(t *Team) []int { return r.present(&t.Team) }

func (r *Roster) present(t *registry.Team) (list []int) {
	for _, g := range t.Members {
		for i := range r.cfg.Adapters {
			if r.guid(i) == g {
				list = append(list, i)
				break
			}
		}
	}
	return list
}

// Of returns the team that has an adapter as a member, nil if none has, and its place among the members: 0 is the carrier.
func (r *Roster) Of(i int) (t *Team, place int) {
	for _, t := range r.made {
		if place := slices.Index(r.Present(t), i); place >= 0 {
			return t, place
		}
	}
	return nil, -1
}

// Idle reports whether an adapter has no wire, because a team has it and another adapter carries the team.
func (r *Roster) Idle(i int) bool {
	_, place := r.Of(i)
	return place > 0
}

// CarriedBy returns the team that has the wire of an adapter which does not carry it, and who does; ok is false if there is none.
// Anybody may call it.
func (r *Roster) CarriedBy(adapter string) (team, carrier string, ok bool) {
	for _, t := range r.opened() {
		for k, m := range t.members {
			if k > 0 && m.adapter != "" && m.adapter == adapter {
				return t.name, t.adapter, true
			}
		}
	}
	return "", "", false
}

// named finds a team by its name, in capitals or not.
func (r *Roster) named(name string) (*Team, error) {
	names := []string{}
	for _, t := range r.made {
		if strings.EqualFold(t.Name, name) {
			return t, nil
		}
		names = append(names, strconv.Quote(t.Name))
	}
	allowed := "there are no teams; vlan_config create team makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return nil, api.Wrong("team", strconv.Quote(name), allowed)
}
