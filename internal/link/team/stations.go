package team

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
)

// SetStation implements link.Stations.
func (l *Link) SetStation(s link.Station) error {
	l.state.Lock()
	defer l.state.Unlock()
	old := slices.Clone(l.stations)
	i := slices.IndexFunc(l.stations, func(o link.Station) bool { return o.MAC == s.MAC && o.VLAN == s.VLAN })
	if i < 0 {
		l.stations = append(l.stations, s)
	} else {
		l.stations[i] = s
	}
	// The members hear before the stations speak: neighbours answer at once.
	err := l.follow()
	if err == nil {
		err = l.Set.SetStation(s)
	}
	if err != nil {
		l.stations = old
		err = errors.Join(err, l.follow())
	}
	l.turn(l.now())
	return err
}

// RemoveStation implements link.Stations.
func (l *Link) RemoveStation(mac [6]byte, vlan uint16) error {
	l.state.Lock()
	defer l.state.Unlock()
	if err := l.Set.RemoveStation(mac, vlan); err != nil {
		return err
	}
	l.stations = slices.DeleteFunc(l.stations, func(o link.Station) bool { return o.MAC == mac && o.VLAN == vlan })
	err := l.follow()
	l.turn(l.now())
	return err
}

// Listen implements link.Stations. Members hand nothing up that is larger than their packets.
func (l *Link) Listen(mac [6]byte, large bool) error {
	l.state.Lock()
	defer l.state.Unlock()
	if err := l.Set.Listen(mac, large); err != nil {
		return err
	}
	if !slices.Contains(l.ears, mac) {
		l.ears = append(l.ears, mac)
	}
	return l.follow()
}

// Unlisten implements link.Stations.
func (l *Link) Unlisten(mac [6]byte) error {
	l.state.Lock()
	defer l.state.Unlock()
	if err := l.Set.Unlisten(mac); err != nil {
		return err
	}
	l.ears = slices.DeleteFunc(l.ears, func(m eth.MAC) bool { return m == mac })
	return l.follow()
}

// Hear implements link.Stations.
func (l *Link) Hear(group [6]byte, hear bool) error {
	l.state.Lock()
	defer l.state.Unlock()
	err := l.Set.Hear(group, hear)
	if l.groups == nil {
		l.groups = map[eth.MAC]bool{}
	}
	if l.groups[group] = hear; !hear {
		delete(l.groups, group)
	}
	for i := range l.members {
		err = errors.Join(err, l.members[i].stations.Hear(group, hear))
	}
	return err
}

// Prepare implements link.Link.
func (l *Link) Prepare(r *frame.Route) error {
	l.state.Lock()
	defer l.state.Unlock()
	err := l.Set.Prepare(r)
	l.turn(l.now())
	return err
}

// follow tells the engine whom it serves, and lets the members hear what is for them, and for the members' own addresses.
func (l *Link) follow() (err error) {
	var serves []team.Station
	var wanted []eth.MAC
	for _, s := range l.stations {
		t := team.Station{MAC: s.MAC, VLAN: s.VLAN}
		for _, p := range s.Prefixes {
			t.Addrs = append(t.Addrs, netip.Addr.Unmap(p.Addr()))
		}
		serves, wanted = append(serves, t), append(wanted, s.MAC)
	}
	for _, mac := range l.ears {
		if !slices.Contains(wanted, mac) {
			serves, wanted = append(serves, team.Station{MAC: mac}), append(wanted, mac)
		}
	}
	l.engine.SetStations(serves)
	for i := range l.members {
		m, hears := &l.members[i], wanted
		if l.kind.Balances() {
			hears = append(slices.Clone(wanted), l.engine.Own(m.place))
		}
		err = errors.Join(err, m.listen(hears))
	}
	return err
}

// listen makes a member hear frames to MACs, and no longer those to others.
func (m *member) listen(wanted []eth.MAC) (err error) {
	for _, mac := range wanted {
		if slices.Contains(m.hears, mac) {
			continue
		}
		if e := m.stations.Listen(mac, false); e != nil {
			err = errors.Join(err, e)
			continue
		}
		m.hears = append(m.hears, mac)
	}
	m.hears = slices.DeleteFunc(m.hears, func(mac eth.MAC) bool {
		if slices.Contains(wanted, mac) {
			return false
		}
		err = errors.Join(err, m.stations.Unlisten(mac))
		return true
	})
	return err
}
