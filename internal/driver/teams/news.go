package teams

import (
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/team"
)

// mostNews is how much news waits to be written; more is lost.
const mostNews = 64

// memberNews is what has changed of a member of the team that an adapter stands on.
type memberNews struct {
	adapter int
	member  string
	team.News
}

// news writes the events of members, by a goroutine: whoever drives the loop finds out.
type news struct {
	news chan memberNews
	done chan struct{}
}

// follow begins to write events.
func (r *Roster) follow() {
	n := &news{news: make(chan memberNews, mostNews), done: make(chan struct{})}
	r.news = n
	go func() {
		defer close(n.done)
		for m := range n.news {
			r.tell(m)
		}
	}()
}

// of returns who takes the news of the team of adapter i. More than mostNews that wait are lost.
func (n *news) of(i int) func(string, team.News) {
	return func(member string, m team.News) {
		select {
		case n.news <- memberNews{i, member, m}:
		default:
		}
	}
}

func (n *news) close() {
	close(n.news)
	<-n.done
}

// tell writes the event of a member's status and role (WinOF 5.50, 4.2.8.3).
func (r *Roster) tell(n memberNews) {
	a := r.cfg.Driver.Adapter(n.adapter)
	if n.Status == team.Connected {
		r.cfg.Events.Raise(a.Generation, events.TeamMemberChanged{Adapter: a.Name, Member: n.member, Status: n.Status.String(),
			Role: n.Role.String()})
		return
	}
	r.cfg.Events.Raise(a.Generation, events.TeamMemberLost{Adapter: a.Name, Member: n.member, Status: n.Status.String(),
		Role: n.Role.String()})
}
