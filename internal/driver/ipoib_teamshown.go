package driver

import (
	"maps"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// shownIPoIBTeam is a team of IPoIB interfaces that has members, as it is shown: who looks holds nothing.
type shownIPoIBTeam struct {
	name     string
	members  []string // adapters
	primary  int      // -1: none
	failBack bool
	run      *service.Team
}

// show shows the teams as they are now. The caller holds changes.
func (x *ipoibTeams) show() {
	var list []shownIPoIBTeam
	for _, t := range x.made {
		if t.run == nil {
			continue
		}
		o := shownIPoIBTeam{name: t.Name, primary: -1, failBack: !t.NoFallBack, run: t.run}
		for k, i := range x.d.membersOf(&t.Team) {
			r := x.d.running[i]
			if o.members = append(o.members, r.Name); r.GUID() == t.Primary {
				o.primary = k
			}
		}
		list = append(list, o)
	}
	x.shown.Store(&list)
}

func (x *ipoibTeams) open() []shownIPoIBTeam {
	if list := x.shown.Load(); list != nil {
		return *list
	}
	return nil
}

// describe returns a team for the management interface. The caller holds changes.
func (x *ipoibTeams) describe(t *ipoibTeam) api.Team {
	o := api.Team{Name: t.Name, GUID: t.GUID, Type: team.AFT.String(), TypeNumber: int(team.AFT), IPoIB: true, FailBack: !t.NoFallBack,
		Members: []api.TeamMember{}, VLANs: []string{}}
	var s service.TeamStatus
	if t.run != nil {
		s = t.run.Status()
	}
	place := 0 // among those that the configuration has
	for _, g := range t.Members {
		m := api.TeamMember{GUID: g, Primary: g == t.Primary}
		if i, err := x.d.adapterNamed(g); err == nil {
			m.Adapter = x.d.running[i].Name
			if o.Carrier == "" {
				o.Carrier = m.Adapter
			}
			if place < len(s.Members) {
				m.Status, m.Role = s.Members[place].Status.String(), s.Members[place].Role.String()
			}
			place++
		}
		o.Members = append(o.Members, m)
	}
	return o
}

// list returns the teams for the management interface. The caller holds changes.
func (x *ipoibTeams) list() (all []api.Team) {
	for _, t := range x.made {
		all = append(all, x.describe(t))
	}
	return all
}

// status returns the state of the teams that have members.
func (x *ipoibTeams) status() (all []api.TeamStatus) {
	for _, t := range x.open() {
		s := t.run.Status()
		o := api.TeamStatus{Adapter: t.members[0], Name: t.name, Type: team.AFT.String(), IPoIB: true, FailBackToPrimary: t.failBack,
			FailOvers: s.Counters.FailOvers, FailBacks: s.Counters.FailBacks, Announced: s.Counters.Announced, Lost: s.Lost,
			StoodBy: s.StoodBy}
		for k, m := range s.Members {
			r := api.TeamMemberStatus{Wire: "IPoIB", Adapter: t.members[k], Primary: k == t.primary, Status: m.Status.String(),
				Role: m.Role.String()}
			if m.Interface != nil {
				st := m.Interface.Status()
				c := &st.Counters
				r.SentFrames, r.SentBytes = c.SentPackets, c.SentBytes
				r.ReceivedFrames, r.ReceivedBytes = c.ReceivedPackets, c.ReceivedBytes
				if k == s.Active {
					o.MAC = st.Address.String()
				}
			}
			o.Members = append(o.Members, r)
		}
		all = append(all, o)
	}
	return all
}

// counted returns the teams with their counters, by the adapters whose network interfaces they have, beside others.
func (x *ipoibTeams) counted(others map[string][]counters.Team) map[string][]counters.Team {
	all := maps.Clone(others)
	for _, s := range x.status() {
		t := counters.Team{Name: s.Name, Values: map[string]uint64{"members": uint64(len(s.Members)), "fail_overs": s.FailOvers,
			"fail_backs": s.FailBacks, "announced": s.Announced, "lost": s.Lost, "stood_by": s.StoodBy}}
		for _, m := range s.Members {
			active, up := m.Role == carrier.Active.String(), m.Status == carrier.Connected.String()
			if active {
				t.Values["up"], t.Values["active_members"] = 1, 1
			}
			t.Members = append(t.Members, counters.TeamMember{Name: m.Adapter, Role: m.Role, Status: m.Status, LACP: "none",
				Values: map[string]uint64{"up": counters.Flag(up), "active": counters.Flag(active),
					"disabled":   counters.Flag(m.Status == carrier.Disabled.String()),
					"sent_bytes": m.SentBytes, "sent_frames": m.SentFrames, "received_bytes": m.ReceivedBytes,
					"received_frames": m.ReceivedFrames}})
		}
		all[s.Adapter] = append(all[s.Adapter], t)
	}
	return all
}
