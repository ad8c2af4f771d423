package teams

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/link"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
)

// PutOn opens the wires of the team that an adapter stands on, and makes them one.
func (r *Roster) PutOn(i int, cfg *device.AdapterConfig) error {
	if t, carries := r.Of(i); carries {
		return t.kind.(*wires).putOn(cfg)
	}
	return r.putOnConfigured(i, cfg)
}

// putOn opens the wires of the members, and makes them one, for its carrier, which has the team's MAC then.
func (w *wires) putOn(cfg *device.AdapterConfig) error {
	r := w.r
	members := r.Present(w.t)
	c := linkteam.Config{Team: w.engine(&w.t.Team, members), Changed: r.news.of(r.Carrier(w.t))}
	var wires []*config.Adapter
	for _, i := range members {
		c.Names, wires = append(c.Names, r.name(i)), append(wires, &r.cfg.Adapters[i])
	}
	l, err := r.join(c, wires, cfg.UDPPort)
	if err != nil {
		return err
	}
	for place, i := range members {
		l.SetDisabled(place, w.disabled(i))
	}
	cfg.Link, cfg.MAC, w.link, w.udpPort = l, l.MAC(), l, cfg.UDPPort
	r.show()
	return nil
}

// join opens wires, and makes them one; none is left open if that fails.
func (r *Roster) join(c linkteam.Config, wires []*config.Adapter, udpPort uint16) (*linkteam.Link, error) {
	c.Notify = r.cfg.Driver.Wake
	for _, a := range wires {
		l, err := r.cfg.Driver.OpenWire(a, udpPort)
		if err != nil {
			return nil, errors.Join(err, closeAll(c.Links))
		}
		c.Links = append(c.Links, l)
	}
	l, err := linkteam.Open(c)
	if err != nil {
		return nil, errors.Join(err, closeAll(c.Links))
	}
	return l, nil
}

// addMember gives the open link the wire of the last member, which is free.
func (w *wires) addMember() error {
	r := w.r
	members := r.Present(w.t)
	c, i := w.engine(&w.t.Team, members), members[len(members)-1]
	l, err := r.cfg.Driver.OpenWire(&r.cfg.Adapters[i], w.udpPort)
	if err != nil {
		return err
	}
	err = r.cfg.Driver.ChangeWire(func() error { return w.link.AddMember(r.name(i), c.Members[len(members)-1], l, w.disabled(i)) })
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// disabled reports whether the wire of a member is to be out of use. Who carries the team is disabled as a whole, and not its wire.
func (w *wires) disabled(i int) bool {
	disabled, _ := w.r.cfg.Registry.Disabled(w.r.cfg.Driver.Adapter(i))
	return disabled && i != w.r.Carrier(w.t)
}

// removeMember takes the wire of a member at a place from the open link, and closes it.
func (w *wires) removeMember(place int) error {
	var l link.Link
	err := w.r.cfg.Driver.ChangeWire(func() (err error) { l, err = w.link.RemoveMember(place); return err })
	return errors.Join(err, l.Close())
}

// rewire puts adapters on the wires that they are to have, by taking them off all first.
func (r *Roster) rewire(adapters []int) error {
	return errors.Join(r.cfg.Driver.Park(adapters), r.cfg.Driver.Unpark(adapters))
}

func closeAll(list []link.Link) (err error) {
	for _, l := range list {
		err = errors.Join(err, l.Close())
	}
	return err
}

// SwitchMember takes the wire of a member that does not carry its team out of use, or puts it back, and keeps that.
func (r *Roster) SwitchMember(i int, enable bool) error {
	t, _ := r.Of(i)
	if err := r.cfg.Registry.Apply(r.cfg.Driver.Adapter(i).Disable(!enable)); err != nil {
		return err
	}
	if l := t.kind.(*wires).link; l != nil {
		l.SetDisabled(slices.Index(r.Present(t), i), !enable)
	}
	return nil
}

// MayRestart refuses what a member that does not carry its team cannot do.
func (r *Roster) MayRestart(i int) error {
	t, carries := r.Of(i)
	if t == nil || carries {
		return nil
	}
	return api.Wrong("adapter", fmt.Sprintf("%q, whose wire is in team %q", r.name(i), t.Name),
		fmt.Sprintf("%q, which carries the team", r.name(r.Carrier(t))))
}
