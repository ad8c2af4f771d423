package teams

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
)

// wires is the kind of teams of Ethernet adapters, whose wires are one.
type wires struct {
	r    *Roster
	t    *Team
	link *linkteam.Link // nil: no adapter stands on it
	// udpPort is that of RoCE v2 with which its wires were opened.
	udpPort uint16
}

var _ kind = (*wires)(nil)

// knows implements kind.
func (w *wires) knows(number uint32) bool {
	kind := team.Type(number)
	return kind >= team.AFT && kind <= team.SLA
}

// parse implements kind.
func (w *wires) parse(name string) (team.Type, error) { return parseType(name) }

// noMember implements kind.
func (w *wires) noMember(i int) string {
	r := w.r
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

// mayAttach implements kind.
func (w *wires) mayAttach(i int, _ *api.TeamMemberRequest) error {
	r, named := w.r, strconv.Quote(w.r.name(i))
	if n := r.cfg.Driver.Functions(i); n > 0 && len(r.Present(w.t)) > 0 && r.Carrier(w.t) != i {
		return api.Wrong("adapter", fmt.Sprintf("%s, whose %d virtual functions use its wire", named, n),
			"one without virtual functions, which only the first member has: it carries the team")
	}
	if len(r.cfg.Driver.VLANs(r.guid(i))) > 0 {
		return api.Wrong("adapter", named+", whose VLAN interfaces use its wire", "one without; vlan_config removevlan removes them")
	}
	return nil
}

// complete implements kind, by the rules of its engine, and with its MAC and those of whoever is to stand on it. The team keeps its MAC,
// whoever leaves, unless another member is to give it, or the one that gave it goes away with it.
func (w *wires) complete(next *registry.Team) error {
	r, t := w.r, w.t
	members := r.present(next)
	if w.link != nil && next.MAC == t.MAC {
		next.MAC = w.link.MAC().String()
	}
	if t.GivesMAC != "" && next.GivesMAC == "" && t.GivesMAC != next.Carrier {
		next.MAC = ""
	}
	c := w.engine(next, members)
	err := c.Check()
	if err == nil && len(members) > 0 && (len(members) > len(r.Present(t)) || w.link == nil || c.MAC() != w.link.MAC()) {
		err = r.cfg.Driver.Clash(r.carrier(next), members, c.MAC())
	}
	if next.MAC = ""; len(members) > 0 {
		next.MAC = c.MAC().String()
	}
	var e *team.Error
	if !errors.As(err, &e) {
		return err
	}
	field := strings.ToLower(e.Field)
	if strings.HasSuffix(e.Field, ".MAC") {
		field = "MAC of a member"
	}
	return api.Wrong(field, fmt.Sprint(e.Value), e.Want)
}

// look implements kind.
func (w *wires) look() func() state {
	if w.link == nil {
		return nil
	}
	return looksAt(w.link)
}

// looksAt returns how a team of wires is.
func looksAt(l *linkteam.Link) func() state {
	return func() state {
		s := l.Status()
		return state{s.Type.String(), s.Hash.String(), s.MAC.String(), s.Counters, s.Members}
	}
}

// become implements kind. What is on the team goes on while a member comes or goes, whichever, and when the type changes. All are taken off
// their wires and put on them again if another carries the team, or it has another MAC.
func (w *wires) become(next registry.Team) error {
	r, t, before := w.r, w.t, w.t.Team
	i, place, more, few := w.only(&next)
	if few {
		return w.one(next, i, place, more)
	}
	t.Team, w.link = next, nil
	r.show()
	return r.rewire(w.touched(&before, &next))
}

// one lets a member come or go, if there is one, or gives the team another type. Who comes or goes is disabled, and enabled again, but for
// the carrier, whose wire alone does.
func (w *wires) one(next registry.Team, i, place int, more bool) error {
	r, t := w.r, w.t
	var alone []int
	if i >= 0 && i != r.Carrier(t) {
		alone = []int{i}
	}
	err := r.cfg.Driver.Park(alone) // and those beside it, who are on the team if it was a member
	before := t.Team
	switch t.Team = next; {
	case err != nil:
	case i >= 0 && more:
		err = w.addMember()
	case i >= 0:
		err = w.removeMember(place)
	case next.Type != before.Type:
		kind := team.Type(next.Type)
		err = r.cfg.Driver.ChangeWire(func() error { return w.link.Become(kind, kind == team.LACP) })
	}
	if err != nil {
		t.Team = before
		return err
	}
	r.show()
	return r.cfg.Driver.Unpark(alone)
}

// back implements kind.
func (w *wires) back(before, next registry.Team) error {
	r := w.r
	w.t.Team, w.link = before, nil
	r.show()
	touched := w.touched(&before, &next)
	err := r.rewire(touched)
	if err != nil {
		for _, i := range touched {
			a := r.cfg.Driver.Adapter(i)
			r.cfg.Events.Raise(a.Generation, events.AdapterStartFailed{Adapter: a.Name, Cause: err})
		}
	}
	return err
}

// touched returns who is in a team before a change, and who is after it.
func (w *wires) touched(before, next *registry.Team) []int {
	list := w.r.whole(before)
	for _, i := range w.r.whole(next) {
		if !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	return list
}

// only returns the member that is all that a change is about, its place, and whether it comes; -1: there is none. few is false if that is
// not all: the adapters on the team have to be put on it anew then.
func (w *wires) only(next *registry.Team) (i, place int, more, few bool) {
	r, t := w.r, w.t
	are := r.present(next)
	c := w.engine(next, are)
	if w.link == nil || next.NoFallBack != t.NoFallBack || c.MAC() != w.link.MAC() || r.carrier(next) != r.Carrier(t) {
		return -1, -1, false, false
	}
	i, place, more, few = only(r.Present(t), are)
	return i, place, more, few && (i < 0 || next.Type == t.Type)
}

// engine returns what the team is for package team, with a member for each of these adapters.
func (w *wires) engine(t *registry.Team, members []int) team.Config {
	c := team.Config{Type: team.Type(t.Type), NoFailBack: t.NoFallBack, Fast: team.Type(t.Type) == team.LACP}
	if mac, err := net.ParseMAC(t.MAC); err == nil && len(mac) == len(c.Address) {
		c.Address = eth.MAC(mac)
	}
	for _, i := range members {
		g := w.r.guid(i)
		c.Members = append(c.Members, team.Member{MAC: w.r.cfg.Adapters[i].WireMAC(), Primary: g == t.Primary, GivesMAC: g == t.GivesMAC})
	}
	return c
}
