package ethernet

import (
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/wire/eth"
)

// listen makes the interface and the socket accept frames for the stations and groups.
func (l *etherLink) listen() error {
	unicast, groups := l.MACs()
	if l.cfg.Promiscuous {
		return nil
	}
	if err := attach(l.fd, filter(unicast)); err != nil {
		return err
	}
	unicast = slices.DeleteFunc(unicast, func(m eth.MAC) bool { return m == l.mac })
	if err := l.members(&l.unicast, unicast, unix.PACKET_MR_UNICAST); err != nil {
		return err
	}
	if err := l.members(&l.groups, groups, unix.PACKET_MR_MULTICAST); err != nil || l.all == l.Listened() {
		return err
	}
	change := unix.PACKET_ADD_MEMBERSHIP
	if l.all {
		change = unix.PACKET_DROP_MEMBERSHIP
	}
	l.all = !l.all
	return l.member(change, unix.PACKET_MR_ALLMULTI, eth.MAC{})
}

// members makes the interface listen to MACs, and no longer to those that are not among them.
func (l *etherLink) members(have *[]eth.MAC, want []eth.MAC, kind uint16) error {
	for _, m := range want {
		if !slices.Contains(*have, m) {
			if err := l.member(unix.PACKET_ADD_MEMBERSHIP, kind, m); err != nil {
				return err
			}
			*have = append(*have, m)
		}
	}
	var err error
	*have = slices.DeleteFunc(*have, func(m eth.MAC) bool {
		if slices.Contains(want, m) {
			return false
		}
		err = l.member(unix.PACKET_DROP_MEMBERSHIP, kind, m)
		return true
	})
	return err
}

func (l *etherLink) member(change int, kind uint16, mac eth.MAC) error {
	m := &unix.PacketMreq{Ifindex: int32(l.index), Type: kind, Alen: uint16(len(mac))}
	copy(m.Address[:], mac[:])
	return os.NewSyscallError("setsockopt PACKET_MEMBERSHIP", unix.SetsockoptPacketMreq(l.fd, unix.SOL_PACKET, change, m))
}

// SetStation implements link.Stations.
func (l *etherLink) SetStation(s link.Station) error {
	for _, p := range s.Prefixes {
		if key := (neighbour.Key{VLAN: s.VLAN, Addr: p.Addr()}); l.stack.Owns(key) && l.stack.ports[s.VLAN].mac != s.MAC {
			return bad("MAC", eth.MAC(s.MAC), fmt.Sprintf("%v, that of the interface, which has the address %v", l.stack.ports[s.VLAN].mac,
				p.Addr()))
		}
	}
	if err := l.Set.SetStation(s); err != nil {
		return err
	}
	err := l.keep()
	if err == nil {
		err = l.listen()
	}
	if err != nil {
		_ = l.RemoveStation(s.MAC, s.VLAN)
	}
	return err
}

// RemoveStation implements link.Stations.
func (l *etherLink) RemoveStation(mac [6]byte, vlan uint16) error {
	if err := l.Set.RemoveStation(mac, vlan); err != nil {
		return err
	}
	_ = l.keep() // it only lets go
	return l.listen()
}

// Listen implements link.Stations.
func (l *etherLink) Listen(mac [6]byte, large bool) error {
	if err := l.Set.Listen(mac, large); err != nil {
		return err
	}
	err := l.listen()
	if err != nil {
		_ = l.Unlisten(mac)
	}
	return err
}

// Unlisten implements link.Stations.
func (l *etherLink) Unlisten(mac [6]byte) error {
	if err := l.Set.Unlisten(mac); err != nil {
		return err
	}
	return l.listen()
}

// Hear implements link.Stations.
func (l *etherLink) Hear(group [6]byte, hear bool) error {
	if err := l.Set.Hear(group, hear); err != nil {
		return err
	}
	err := l.listen()
	if err != nil && hear {
		_ = l.Set.Hear(group, false)
	}
	return err
}

// Join implements link.Multicaster.
func (l *etherLink) Join(group netip.Addr) error {
	if err := l.Set.Join(group); err != nil {
		return err
	}
	if err := l.listen(); err != nil {
		_ = l.Leave(group)
		return fmt.Errorf("%s: join group %v: %w", name, group, err)
	}
	return nil
}

// Leave implements link.Multicaster.
func (l *etherLink) Leave(group netip.Addr) error {
	if err := l.Set.Leave(group); err != nil {
		return err
	}
	return l.listen()
}

// keep reserves the UDP port of the stations' addresses that are the system's, and lets go of others.
func (l *etherLink) keep() (err error) {
	want := l.SystemAddresses()
	l.Apart(func() { err = l.stack.keep(want, l.cfg.UDPPort) })
	return err
}
