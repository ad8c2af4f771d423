package driver

import "github.com/softvpi/softvpi/internal/api"

// A Driver has teams of two kinds: those of adapters with Ethernet wires are the Roster's.

// Teams implements api.TeamSource.
func (d *Driver) Teams() []api.Team {
	all := d.Roster.Teams()
	d.changes.Lock()
	defer d.changes.Unlock()
	return append(all, d.ipoibTeams.list()...)
}

// CreateTeam implements api.TeamSource.
func (d *Driver) CreateTeam(q api.TeamRequest) (api.Team, error) {
	if !q.IPoIB {
		return d.Roster.CreateTeam(q)
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	return d.ipoibTeams.create(&q)
}

// onIPoIB does something with the team of IPoIB interfaces of a name; is says whether there is one.
func (d *Driver) onIPoIB(name string, do func(*ipoibTeam) (api.Team, error)) (t api.Team, is bool, err error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	o := d.ipoibTeams.named(name)
	if o == nil {
		return t, false, nil
	}
	t, err = do(o)
	return t, true, err
}

// ModifyTeam implements api.TeamSource.
func (d *Driver) ModifyTeam(name string, q api.TeamRequest) (api.Team, error) {
	t, is, err := d.onIPoIB(name, func(o *ipoibTeam) (api.Team, error) { return d.ipoibTeams.modify(o, &q) })
	if !is {
		return d.Roster.ModifyTeam(name, q)
	}
	return t, err
}

// RemoveTeam implements api.TeamSource.
func (d *Driver) RemoveTeam(name string) (api.Team, error) {
	t, is, err := d.onIPoIB(name, d.ipoibTeams.remove)
	if !is {
		return d.Roster.RemoveTeam(name)
	}
	return t, err
}

// AttachMember implements api.TeamSource.
func (d *Driver) AttachMember(name, adapter string, q api.TeamMemberRequest) (api.Team, error) {
	t, is, err := d.onIPoIB(name, func(o *ipoibTeam) (api.Team, error) { return d.ipoibTeams.attach(o, adapter, q) })
	if !is {
		return d.Roster.AttachMember(name, adapter, q)
	}
	return t, err
}

// DetachMember implements api.TeamSource.
func (d *Driver) DetachMember(name, adapter string) (api.Team, error) {
	t, is, err := d.onIPoIB(name, func(o *ipoibTeam) (api.Team, error) { return d.ipoibTeams.detach(o, adapter) })
	if !is {
		return d.Roster.DetachMember(name, adapter)
	}
	return t, err
}
