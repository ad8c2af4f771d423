// Package teams has the teams of a driver: those of its configuration, which are of wires, and those that are made by command (vlan_config;
// WinOF 5.50, 4.1.6), which are of adapters. There are two kinds of these: of wires of Ethernet adapters, and of IPoIB interfaces (4.2.8).
//
// The wires of all members are an Ethernet team's. Its carrier, who was attached first, keeps its address, its functions and its host,
// and they stand on the team, also when its own wire leaves; the other members are disabled until they leave. In a team of
// IPoIB interfaces adapters stay enabled, RDMA is theirs, and the first one's network interface is the team's. What is changed is
// kept in the registry.
//
// It says what teams are to be, has them run (internal/link/team; internal/ipoib/service) and tells of them. The lives of the adapters are
// the driver's, which it asks to put them on their wires.
//
// Files: roster has the teams and who is in them, set changes them, kind says what the kinds have in their own ways, wires and interfaces
// are these, configured opens the teams of the configuration, status, counted and news tell of all.
package teams

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/registry"
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
	// Clash refuses a MAC for a team of these members that an adapter carries if somebody else who is to stand on it has that too, or two
	// others have one.
	Clash(carrier int, members []int, mac [6]byte) error
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
	// JoinIPoIB makes the IPoIB interfaces of adapters a team that another has the network interface of, in place of what was one by that
	// GUID; those of former members are by themselves again. Without members there is no team, which is nil.
	JoinIPoIB(guid string, carrier int, members, former []int, cfg service.TeamConfig) (*service.Team, error)
	// AttachIPoIB makes the IPoIB interface of an adapter a member of such a team, and DetachIPoIB lets one be by itself again; all others
	// go on.
	AttachIPoIB(guid string, i int, primary bool) error
	DetachIPoIB(guid string, i int)
	// PortSpeed is that of an adapter's InfiniBand port, in bits per second; 0: it is down.
	PortSpeed(i int) uint64
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
}

// Roster has the teams of a driver. The zero value has none.
type Roster struct {
	cfg        Config
	configured []open  // those of wires; complete once the adapters are
	fixed      []*Team // those of IPoIB interfaces of the configuration
	made       []*Team // with Changes held
	shown      atomic.Pointer[[]open]
	news       *news
}

// Team is one that was made by command, or of IPoIB interfaces by the configuration. The holder of Changes has it.
type Team struct {
	registry.Team
	kind kind
}

// New makes the teams again that the registry keeps. It is called before there are adapters; those of IPoIB interfaces run from Start on.
func New(cfg Config) *Roster {
	r := &Roster{cfg: cfg}
	r.fix()
	for _, kept := range cfg.Registry.Teams() {
		t := r.team(kept)
		if !t.kind.knows(kept.Type) {
			cfg.Log.Warn("a team that was made before is not there: its type is unknown", "team", kept.Name, "type", kept.Type)
			continue
		}
		if !kept.IPoIB {
			r.prune(t)
		}
		r.made = append(r.made, t)
	}
	r.follow()
	return r
}

// Start has the teams of IPoIB interfaces run, once the ports of adapters are known.
func (r *Roster) Start() {
	for _, t := range slices.Concat(r.fixed, r.made) {
		if !t.IPoIB {
			continue
		}
		r.prune(t)
		if err := t.kind.become(t.Team); err != nil {
			r.cfg.Log.Warn("a team of IPoIB interfaces does not run", "team", t.Name, "cause", err)
		}
	}
}

// prune takes adapters out of a team that can be members no more.
func (r *Roster) prune(t *Team) {
	for _, i := range r.whole(&t.Team) {
		if why := t.kind.noMember(i); why != "" {
			r.cfg.Log.Warn("an adapter is not in its team any more", "team", t.Name, "adapter", r.name(i), "cause", why)
			t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(g string) bool { return g == r.guid(i) })
			if t.Carrier == r.guid(i) {
				t.Carrier = ""
			}
		}
	}
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

// Present returns the members of a team that the configuration has, in the team's order.
func (r *Roster) Present(t *Team) []int { return r.present(&t.Team) }

func (r *Roster) present(t *registry.Team) (list []int) {
	for _, g := range t.Members {
		if i := r.indexOf(g); i >= 0 {
			list = append(list, i)
		}
	}
	return list
}

// indexOf returns the adapter with a GUID; -1: the configuration has none.
func (r *Roster) indexOf(guid string) int {
	for i := range r.cfg.Adapters {
		if r.guid(i) == guid {
			return i
		}
	}
	return -1
}

// TeamOf returns the team that an adapter is in, as a member or as who carries it, whatever its kind; nil: it is in none.
func (r *Roster) TeamOf(i int) *Team {
	for _, t := range slices.Concat(r.fixed, r.made) {
		if slices.Contains(r.whole(&t.Team), i) {
			return t
		}
	}
	return nil
}

// Of returns the team of wires that an adapter is in, and whether it carries that; nil: it is in none.
func (r *Roster) Of(i int) (t *Team, carries bool) {
	if t = r.TeamOf(i); t == nil || t.IPoIB {
		return nil, false
	}
	return t, r.Carrier(t) == i
}

// Carrier returns the adapter whose address and functions a team has, -1 if no member is there: the one that was attached first, also when
// its own wire is in the team no more.
func (r *Roster) Carrier(t *Team) int { return r.carrier(&t.Team) }

func (r *Roster) carrier(t *registry.Team) int {
	members := r.present(t)
	if len(members) == 0 {
		return -1
	}
	if i := r.indexOf(t.Carrier); i >= 0 {
		return i
	}
	return members[0]
}

// whole returns the members of a team, and who carries it.
func (r *Roster) whole(t *registry.Team) []int {
	list := r.present(t)
	if i := r.carrier(t); i >= 0 && !slices.Contains(list, i) {
		list = append(list, i)
	}
	return list
}

// Idle reports whether an adapter has no wire, because a team has it and another adapter carries the team.
func (r *Roster) Idle(i int) bool {
	t, carries := r.Of(i)
	return t != nil && !carries
}

// CarriedBy returns the team that has the wire of an adapter which does not carry it, and who does; ok is false if there is none.
// Anybody may call it.
func (r *Roster) CarriedBy(adapter string) (team, carrier string, ok bool) {
	for _, t := range r.opened() {
		for _, m := range t.members {
			if !t.ipoib && m.adapter == adapter && adapter != t.adapter {
				return t.name, t.adapter, true
			}
		}
	}
	return "", "", false
}

// Find returns the team with a name, in capitals or not, or a GUID, with braces or not; nil: there is none.
func (r *Roster) Find(name string) *Team {
	for _, t := range r.made {
		if strings.EqualFold(t.Name, name) || strings.EqualFold(strings.Trim(t.GUID, "{}"), strings.Trim(name, "{}")) {
			return t
		}
	}
	return nil
}

// named is Find, with what there is if there is no such team.
func (r *Roster) named(name string) (*Team, error) {
	if t := r.Find(name); t != nil {
		return t, nil
	}
	var names []string
	for _, t := range r.made {
		names = append(names, strconv.Quote(t.Name))
	}
	allowed := "there are no teams; vlan_config create team makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return nil, api.Wrong("team", strconv.Quote(name), allowed)
}
