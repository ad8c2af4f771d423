package teams

import (
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

// PutOn opens the wires of the team that an adapter stands on, and makes them one.
func (r *Roster) PutOn(i int, cfg *device.AdapterConfig) error {
	if t, place := r.Of(i); place == 0 {
		return r.putOnMade(t, cfg)
	}
	return r.putOnConfigured(i, cfg)
}

// putOnConfigured opens a team of the configuration. Without a MAC in its configuration the adapter has the team's.
func (r *Roster) putOnConfigured(i int, cfg *device.AdapterConfig) (err error) {
	a := &r.cfg.Adapters[i]
	c := linkteam.Config{Team: a.Team.Engine(), Notify: r.cfg.Driver.Wake}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(c.Links))
		}
	}()
	for k := range a.Team.Members {
		c.Names = append(c.Names, a.Team.Members[k].String())
	}
	c.Changed = r.news.of(i)
	for k := range a.Team.Members {
		if c.Team.Members[k].MAC, err = a.MemberMAC(k); err != nil {
			return err
		}
		l, err := r.cfg.Driver.OpenWire(a.Team.Members[k].Wire(a), cfg.UDPPort)
		if err != nil {
			return err
		}
		c.Links = append(c.Links, l)
	}
	l, err := linkteam.Open(c)
	if err != nil {
		return err
	}
	if cfg.Link = l; cfg.MAC == [6]byte{} {
		cfg.MAC = l.MAC()
	}
	r.showConfigured(i, l)
	return nil
}

// putOnMade opens the wires of a team's members, and makes them one, for its carrier, which has the team's MAC then.
func (r *Roster) putOnMade(t *Team, cfg *device.AdapterConfig) (err error) {
	members := r.Present(t)
	c := linkteam.Config{Team: r.engine(&t.Team, members), Notify: r.cfg.Driver.Wake}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(c.Links))
		}
	}()
	for _, i := range members {
		c.Names = append(c.Names, r.name(i))
	}
	c.Changed = r.news.of(members[0])
	for _, i := range members {
		l, err := r.cfg.Driver.OpenWire(&r.cfg.Adapters[i], cfg.UDPPort)
		if err != nil {
			return err
		}
		c.Links = append(c.Links, l)
	}
	l, err := linkteam.Open(c)
	if err != nil {
		return err
	}
	for place, i := range members[1:] {
		disabled, _ := r.cfg.Registry.Disabled(r.cfg.Driver.Adapter(i))
		l.SetDisabled(place+1, disabled)
	}
	cfg.Link, cfg.MAC, t.link, t.udpPort = l, l.MAC(), l, cfg.UDPPort
	r.show()
	return nil
}

// engine returns what the team is for package team, with a member for each of these adapters.
func (r *Roster) engine(t *registry.Team, members []int) team.Config {
	c := team.Config{Type: team.Type(t.Type), NoFailBack: t.NoFallBack, Fast: team.Type(t.Type) == team.LACP}
	for _, i := range members {
		g := r.guid(i)
		c.Members = append(c.Members, team.Member{MAC: r.cfg.Adapters[i].WireMAC(), Primary: g == t.Primary, GivesMAC: g == t.GivesMAC})
	}
	return c
}

// addMember gives the open link of a team the wire of its last member, which is free.
func (r *Roster) addMember(t *Team) error {
	members := r.Present(t)
	c, i := r.engine(&t.Team, members), members[len(members)-1]
	l, err := r.cfg.Driver.OpenWire(&r.cfg.Adapters[i], t.udpPort)
	if err != nil {
		return err
	}
	disabled, _ := r.cfg.Registry.Disabled(r.cfg.Driver.Adapter(i))
	err = r.cfg.Driver.ChangeWire(func() error { return t.link.AddMember(r.name(i), c.Members[len(members)-1], l, disabled) })
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// removeMember takes the wire of a member at a place from the open link of a team, and closes it.
func (r *Roster) removeMember(t *Team, place int) error {
	var l link.Link
	err := r.cfg.Driver.ChangeWire(func() (err error) { l, err = t.link.RemoveMember(place); return err })
	return errors.Join(err, l.Close())
}

func closeAll(list []link.Link) (err error) {
	for _, l := range list {
		err = errors.Join(err, l.Close())
	}
	return err
}

// SwitchMember takes the wire of a member that does not carry its team out of use, or puts it back, and keeps that.
func (r *Roster) SwitchMember(i int, enable bool) error {
	t, place := r.Of(i)
	if err := r.cfg.Registry.Apply(r.cfg.Driver.Adapter(i).Disable(!enable)); err != nil {
		return err
	}
	if t.link != nil {
		t.link.SetDisabled(place, !enable)
	}
	return nil
}

// MayRestart refuses what a member that does not carry its team cannot do.
func (r *Roster) MayRestart(i int) error {
	t, place := r.Of(i)
	if place <= 0 {
		return nil
	}
	return api.Wrong("adapter", fmt.Sprintf("%q, whose wire is in team %q", r.name(i), t.Name),
		fmt.Sprintf("%q, which carries the team", r.name(r.Present(t)[0])))
}
