package driver

import (
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/team"
)

// memberNews is what has changed of a member of the team that an adapter stands on.
type memberNews struct {
	adapter int
	member  string
	team.News
}

// teamNews writes the events of members, by a goroutine: whoever drives the loop finds out.
type teamNews struct {
	news chan memberNews
	done chan struct{}
}

// followTeams begins to write events.
func (d *Driver) followTeams() {
	t := &teamNews{news: make(chan memberNews, mostEvents), done: make(chan struct{})}
	d.teamNews = t
	go func() {
		defer close(t.done)
		for n := range t.news {
			d.tellMember(n)
		}
	}()
}

// of returns who takes the news of the team of adapter i, whose members have these names. More than mostEvents that wait are lost.
func (t *teamNews) of(i int, names []string) func(team.News) {
	return func(n team.News) {
		select {
		case t.news <- memberNews{i, names[n.Member], n}:
		default:
		}
	}
}

func (t *teamNews) close() {
	if t != nil {
		close(t.news)
		<-t.done
	}
}

// tellMember writes the event of a member's status and role (WinOF 5.50, 4.2.8.3).
func (d *Driver) tellMember(n memberNews) {
	r := d.running[n.adapter]
	if n.Status == team.Connected {
		d.events.Raise(r.Generation, events.TeamMemberChanged{Adapter: r.Name, Member: n.member, Status: n.Status.String(),
			Role: n.Role.String()})
		return
	}
	d.events.Raise(r.Generation, events.TeamMemberLost{Adapter: r.Name, Member: n.member, Status: n.Status.String(), Role: n.Role.String()})
}
