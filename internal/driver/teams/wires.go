package teams

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
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
	if n := r.cfg.Driver.Functions(i); n > 0 && len(r.Present(w.t)) > 0 {
		return api.Wrong("adapter", fmt.Sprintf("%s, whose %d virtual functions use its wire", named, n),
			"one without virtual functions, which only the first member has: it carries the team")
	}
	if len(r.cfg.Driver.VLANs(r.guid(i))) > 0 {
		return api.Wrong("adapter", named+", whose VLAN interfaces use its wire", "one without; vlan_config removevlan removes them")
	}
	return nil
}

// check implements kind: by the rules of its engine, and with its MAC and those of whoever is to stand on it.
func (w *wires) check(next *registry.Team) error {
	r := w.r
	members, were := r.present(next), r.Present(w.t)
	c, o := w.engine(next, members), w.engine(&w.t.Team, were)
	err := c.Check()
	if err == nil && len(members) > 0 && (len(members) > len(were) || c.MAC() != o.MAC()) {
		err = r.cfg.Driver.Clash(members, c.MAC())
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

// become implements kind: with all members that the change touches, or with the one alone that comes or goes. One more member that carries
// nothing yet, or one less, leaves the adapters that stand on the team alone, as long as that keeps its carrier and its MAC.
func (w *wires) become(next registry.Team) error {
	r, t, before := w.r, w.t, w.t.Team
	i, place, more := w.only(&next)
	if place == 0 {
		t.Team, w.link = next, nil
		r.show()
		return r.rewire(w.touched(&before, &next))
	}
	err := r.cfg.Driver.Park([]int{i}) // and those beside it, who are on the team if it was a member
	if t.Team = next; err == nil && more {
		err = w.addMember()
	} else if err == nil {
		err = w.removeMember(place)
	}
	if err != nil {
		t.Team = before
		return err
	}
	r.show()
	return r.cfg.Driver.Unpark([]int{i})
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

// touched returns the members of a team before a change and after it.
func (w *wires) touched(before, next *registry.Team) []int {
	list := w.r.present(before)
	for _, i := range w.r.present(next) {
		if !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	return list
}

// only returns the member that is all that a change is about, its place, and whether it comes; place 0: the adapters on the team have to be
// put on it anew, as it gets another type, carrier or MAC, or its link is not open.
func (w *wires) only(next *registry.Team) (i, place int, more bool) {
	r, t := w.r, w.t
	were, are := r.Present(t), r.present(next)
	c := w.engine(next, are)
	if w.link == nil || next.Type != t.Type || next.NoFallBack != t.NoFallBack || c.MAC() != w.link.MAC() {
		return 0, 0, false
	}
	if more = len(are) > len(were); more {
		were, are = are, were
	}
	for k, i := range were { // the longer list
		if k == len(are) || are[k] != i {
			if len(were) != len(are)+1 || !slices.Equal(were[k+1:], are[k:]) || more && k < len(are) {
				return 0, 0, false
			}
			return i, k, more
		}
	}
	return 0, 0, false
}

// engine returns what the team is for package team, with a member for each of these adapters.
func (w *wires) engine(t *registry.Team, members []int) team.Config {
	c := team.Config{Type: team.Type(t.Type), NoFailBack: t.NoFallBack, Fast: team.Type(t.Type) == team.LACP}
	for _, i := range members {
		g := w.r.guid(i)
		c.Members = append(c.Members, team.Member{MAC: w.r.cfg.Adapters[i].WireMAC(), Primary: g == t.Primary, GivesMAC: g == t.GivesMAC})
	}
	return c
}
