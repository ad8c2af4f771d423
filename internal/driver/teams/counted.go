package teams

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/counters/collector"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/lacp"
)

// Counted returns the teams with their counters, by the adapters' names.
func (r *Roster) Counted() map[string][]collector.Team {
	all := map[string][]collector.Team{}
	for _, t := range r.opened() {
		all[t.adapter] = append(all[t.adapter], t.counted())
	}
	return all
}

// counted returns a team with its counters. One of the configuration has the name of its adapter, which no other team has.
func (o *open) counted() collector.Team {
	s := o.look()
	c := &s.counters
	t := collector.Team{Name: o.name, Values: map[string]uint64{"members": uint64(len(s.members)), "fail_overs": c.FailOvers,
		"fail_backs": c.FailBacks, "announced": c.Announced, "peers_told": c.Told, "lost": c.Lost, "stood_by": c.StoodBy,
		"returned": c.Returned, "strange": c.Strange}}
	if t.Name == "" {
		t.Name = o.adapter
	}
	taken := map[string]bool{}
	for k := range s.members {
		m := &s.members[k]
		name := m.Name
		for n := 2; taken[name]; n++ { // several ports of one switch
			name = fmt.Sprintf("%s (%d)", m.Name, n)
		}
		taken[name] = true
		if m.Role == team.Active {
			t.Values["up"] = 1
			t.Values["active_members"]++
			t.Values["speed"] += m.Speed
		}
		t.Members = append(t.Members, countedMember(name, m))
	}
	return t
}

func countedMember(name string, m *linkteam.MemberStatus) collector.TeamMember {
	o := collector.TeamMember{Name: name, Role: m.Role.String(), Status: m.Status.String(), LACP: "none"}
	o.Values = map[string]uint64{"up": collector.Flag(m.Status == team.Connected), "active": collector.Flag(m.Role == team.Active),
		"disabled": collector.Flag(m.Status == team.Disabled), "speed": m.Speed, "sent_bytes": m.SentBytes, "sent_frames": m.SentFrames,
		"received_bytes": m.ReceivedBytes, "received_frames": m.ReceivedFrames}
	l := m.LACP
	if l == nil {
		return o
	}
	o.LACP = l.State()
	o.Values["lacp_partner"] = collector.Flag(l.Speaks())
	o.Values["lacp_collecting"] = collector.Flag(l.Up && l.Actor.State&lacp.Collecting != 0)
	o.Values["lacp_distributing"] = collector.Flag(l.Up && l.Actor.State&lacp.Distributing != 0)
	o.Values["lacp_received"], o.Values["lacp_sent"], o.Values["lacp_errors"] = l.Heard, l.Sent, l.Errors
	o.Values["lacp_timeouts"], o.Values["lacp_markers"] = l.Timeouts, l.Markers
	return o
}
