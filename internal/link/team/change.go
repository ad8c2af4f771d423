package team

import (
	"errors"
	"slices"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/lacp"
)

// none is the index of a member that is not there.
const none = -1

// locate notes where the members are.
func (l *Link) locate() {
	for place := range l.at {
		l.at[place] = none
	}
	for i := range l.members {
		l.at[l.members[i].place] = i
	}
}

// AddMember makes another link the last member, disabled or not, and takes it unless there is an error: those of Open. The team's address
// stays what it is, and what others carry goes on. Only who owns the link may call it, and then looks at its descriptors anew.
func (l *Link) AddMember(name string, m team.Member, k link.Link, disabled bool) error {
	l.state.Lock()
	defer l.state.Unlock()
	o, err := newMember("Link", k)
	if err != nil {
		return err
	}
	if o.place, err = l.engine.Join(m); err != nil {
		return err
	}
	now := l.now()
	l.engine.SetDisabled(now, o.place, disabled)
	o.name = name
	l.members = append(l.members, o)
	l.locate()
	last := &l.members[len(l.members)-1]
	err = l.hearPartner(last)
	for group := range l.groups {
		err = errors.Join(err, last.stations.Hear(group, true))
	}
	if err = errors.Join(err, l.follow()); err != nil {
		_, e := l.remove(len(l.members) - 1)
		return errors.Join(err, e)
	}
	if l.pauses != nil {
		l.pauses(last)
	}
	l.look(now, len(l.members)-1)
	l.turn(now)
	return nil
}

// RemoveMember takes a member out, as if it had failed, and returns its link, which is the caller's then. Only who owns the team's link may
// call it.
func (l *Link) RemoveMember(i int) (link.Link, error) {
	l.state.Lock()
	defer l.state.Unlock()
	return l.remove(i)
}

func (l *Link) remove(i int) (link.Link, error) {
	m := l.members[i]
	if f := l.engine.Farewell(m.place); f != nil {
		l.emit(m.place, f, offload.Task{})
	}
	l.engine.Leave(l.now(), m.place)
	l.members = slices.Delete(l.members, i, i+1)
	l.locate()
	err := l.follow()
	l.turn(l.now())
	return m.Link, err
}

// Become gives the team another type, for its members and with its address; fast is as of team.Config. What it serves goes on. Only who
// owns the link may call it. The error is a *team.Error, or a member's.
func (l *Link) Become(kind team.Type, fast bool) (err error) {
	l.state.Lock()
	defer l.state.Unlock()
	now := l.now()
	if err := l.engine.Become(now, kind, fast); err != nil {
		return err
	}
	spoke := l.kind == team.LACP
	l.kind = kind
	for i := range l.members {
		m := &l.members[i]
		if err = errors.Join(err, l.hearPartner(m)); spoke && kind != team.LACP && !l.groups[lacp.SlowProtocols] {
			err = errors.Join(err, m.stations.Hear(lacp.SlowProtocols, false))
		}
	}
	err = errors.Join(err, l.follow())
	l.turn(now)
	return err
}
