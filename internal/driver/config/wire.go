package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/tun"
)

// The kinds of links of whole Ethernet frames.
const (
	LinkInterface = "interface" // an Ethernet interface of Linux, through packet sockets
	LinkTAP       = "tap"       // the other side of a TAP interface
	LinkDatagram  = "datagram"  // a pair of unix datagram sockets, as of QEMU's -netdev dgram
	LinkSwitch    = "switch"    // a port of a virtual Ethernet switch in the driver
	LinkFabric    = "fabric"    // a host of the Ethernet fabric that another process runs
	LinkTeam      = "team"      // several of the others but the fabric, which are one
)

// peerSuffix is what the path of the other side's socket has behind the driver's, unless it is given.
const peerSuffix = ".peer"

const (
	leastLinkMTU = 576 // RFC 791
	mostLinkMTU  = 65521
	// mostSocket is the longest path of a unix socket (sockaddr_un, with the 0 at its end).
	mostSocket = 107
)

// Wire describes what carries an adapter's whole Ethernet frames, and the adapter's place on that Ethernet. Its fields are
// given with such a link only.
type Wire struct {
	// Datagram is the path of the socket on which the frames of a datagram link arrive, and Peer that of the other side's;
	// empty: Datagram with ".peer" behind it.
	Datagram string `json:"datagram,omitempty"`
	Peer     string `json:"peer,omitempty"`
	// Switch is the name of the virtual switch of the driver of which the adapter has a port of its own. PVID is the VLAN of
	// the port's frames without a tag, 1 to 4094, and Trunk are those of its frames with one, as 10+20-29 or all. With
	// neither the port has VLAN 1 without a tag and all others with one; with PVID alone it has no other, and with Trunk
	// alone it drops frames without a tag.
	Switch string `json:"switch,omitempty"`
	PVID   uint16 `json:"pvid,omitempty"`
	Trunk  string `json:"trunk,omitempty"`
	// Prefix is the length of the network of Address that is on the wire; 0: everybody is. Gateway is the router to others.
	Prefix  int        `json:"prefix,omitempty"`
	Gateway netip.Addr `json:"gateway,omitzero"`
	// MAC is the permanent one, as 02:00:00:00:00:01; empty: the interface's if it has Address, or derived from the address.
	MAC string `json:"mac,omitempty"`
	// VLAN tags the adapter's frames, 1 to 4094; 0: they are not tagged.
	VLAN uint16 `json:"vlan,omitempty"`
	// NoProbes uses the address without asking on the wire whether somebody else has it.
	NoProbes bool `json:"no_probes,omitempty"`
	// LinkMTU is the largest IP packet in bytes, 576 to 65521, that a datagram link or a switch carries (a fabric: to 4206), 0: 1500;
	// or what is set on a TAP, 0: it keeps its own.
	LinkMTU int `json:"link_mtu,omitempty"`
}

// WholeFrames reports whether the adapter's link carries whole Ethernet frames.
func (a *Adapter) WholeFrames() bool {
	return slices.Contains([]string{LinkInterface, LinkTAP, LinkDatagram, LinkSwitch, LinkFabric, LinkTeam}, a.Link)
}

// SameWire reports whether two adapters are functions at one port. Each has a port of its own at a switch and on a fabric.
func (a *Adapter) SameWire(b *Adapter) bool {
	if a.Link == LinkTeam && b.Link == LinkTeam {
		return a.standsOn() == b.standsOn()
	}
	return slices.Contains([]string{LinkInterface, LinkTAP, LinkDatagram}, a.Link) && a.Link == b.Link && a.Interface == b.Interface &&
		a.Datagram == b.Datagram
}

// Neighbours reports whether what the configuration tells lets two adapters reach each other: both are on one wire or switch, and VLAN,
// or on none of whole frames.
func (a *Adapter) Neighbours(b *Adapter) bool {
	if a.Link == LinkSwitch && b.Link == LinkSwitch {
		return a.Switch == b.Switch && a.switchVLAN() == b.switchVLAN()
	}
	if a.Link == LinkFabric && b.Link == LinkFabric {
		return a.VLAN == b.VLAN
	}
	return a.WholeFrames() == b.WholeFrames() && (!a.WholeFrames() || a.SameWire(b) && a.VLAN == b.VLAN)
}

// StationMAC returns the adapter's MAC; 0: the device decides.
func (a *Adapter) StationMAC() (mac [6]byte) {
	if b, err := net.ParseMAC(a.MAC); err == nil && len(b) == len(mac) {
		return [6]byte(b)
	}
	if a.Link == LinkTeam {
		return mac // the team's own, which its members give
	}
	// Such an address is nobody's yet, whatever interface of this machine has it too.
	if a.Link == LinkTAP || a.Link == LinkDatagram || a.Link == LinkSwitch || a.Link == LinkFabric || a.Host != "" {
		return gid.MAC(a.Address)
	}
	return mac
}

// Network returns the adapter's address with the length of its network.
func (a *Adapter) Network() netip.Prefix { return netip.PrefixFrom(a.Address, a.Prefix) }

// completeWire fills in the defaults of a link of whole frames, and checks its configuration.
func (a *Adapter) completeWire(field func(string) string) error {
	if !a.WholeFrames() {
		if a.Wire != (Wire{}) {
			return api.Wrong(field("datagram, peer, switch, pvid, trunk, prefix, gateway, mac, vlan, link_mtu"), "given",
				`nothing without "link": "interface", "tap", "datagram", "switch", "fabric" or "team"`)
		}
		return nil
	}
	for name, given := range map[string]bool{
		"frames": a.Frames != "", "node": a.Node != "" && a.Link != LinkFabric, "port": a.Port != 0,
		"follow_interface": a.FollowInterface && a.Link != LinkInterface,
		"receive_buffer":   a.ReceiveBuffer != 0 && a.Link != LinkInterface && a.Link != LinkTeam,
		"link_mtu":         a.LinkMTU != 0 && a.Link == LinkInterface,
		"datagram":         a.Datagram != "" && a.Link != LinkDatagram,
		"peer":             a.Peer != "" && a.Link != LinkDatagram,
		"interface":        a.Interface != "" && a.Link != LinkInterface && a.Link != LinkTAP,
		"switch":           a.Switch != "" && a.Link != LinkSwitch,
		"pvid":             a.PVID != 0 && a.Link != LinkSwitch,
		"trunk":            a.Trunk != "" && a.Link != LinkSwitch,
	} {
		if given {
			return api.Wrong(field(name), "given", fmt.Sprintf("nothing with \"link\": %q", a.Link))
		}
	}
	switch {
	case a.Link == LinkDatagram:
		if err := a.completeSockets(field); err != nil {
			return err
		}
	case a.Link == LinkSwitch:
		if err := a.checkSwitch(field); err != nil {
			return err
		}
	case a.Link == LinkFabric:
		if a.LinkMTU > cable.MostMTU {
			return api.Wrong(field("link_mtu"), fmt.Sprint(a.LinkMTU),
				fmt.Sprintf("%d to %d on a fabric, or 0 for 1500", leastLinkMTU, cable.MostMTU))
		}
	case a.Link == LinkTeam:
		// completeTeam has checked it
	case a.Interface == "":
		return api.Wrong(field("interface"), "missing", fmt.Sprintf("the name of a network interface, of 1 to %d bytes", tun.MaxName))
	}
	if err := a.checkInterface(field); err != nil {
		return err
	}
	return a.checkPlace(field)
}

func (a *Adapter) completeSockets(field func(string) string) error {
	if a.Peer == "" && a.Datagram != "" {
		a.Peer = a.Datagram + peerSuffix
	}
	for _, p := range []struct{ name, path string }{{"datagram", a.Datagram}, {"peer", a.Peer}} {
		if !filepath.IsAbs(p.path) || len(p.path) > mostSocket || strings.Contains(p.path, "\x00") {
			return api.Wrong(field(p.name), fmt.Sprintf("%q", p.path), fmt.Sprintf("the path of a socket from the root, of at most %d bytes", mostSocket))
		}
	}
	if a.Peer == a.Datagram {
		return api.Wrong(field("peer"), fmt.Sprintf("%q", a.Peer), "another path than that of datagram")
	}
	return nil
}

// checkPlace checks what the adapter is on the Ethernet.
func (a *Adapter) checkPlace(field func(string) string) error {
	bits := a.Address.BitLen()
	if a.Prefix < 0 || a.Prefix > bits {
		return api.Wrong(field("prefix"), fmt.Sprint(a.Prefix), fmt.Sprintf("0 (everybody is on the wire) to %d", bits))
	}
	g := a.Gateway
	if g.IsValid() && (g.Is4() != a.Address.Is4() || g.Zone() != "" || g.IsUnspecified() || g.IsMulticast() || g == a.Address) {
		return api.Wrong(field("gateway"), g.String(), "the address of a router, of the family of address")
	}
	if b, err := net.ParseMAC(a.MAC); a.MAC != "" && (err != nil || len(b) != 6 || b[0]&1 != 0 || slices.Equal(b, make([]byte, 6))) {
		return api.Wrong(field("mac"), fmt.Sprintf("%q", a.MAC), "the MAC of one station, such as 02:00:00:00:00:01")
	}
	if a.VLAN > 4094 {
		return api.Wrong(field("vlan"), fmt.Sprint(a.VLAN), "1 to 4094, or 0 for none")
	}
	if a.LinkMTU != 0 && (a.LinkMTU < leastLinkMTU || a.LinkMTU > mostLinkMTU) {
		return api.Wrong(field("link_mtu"), fmt.Sprint(a.LinkMTU), fmt.Sprintf("%d to %d, or 0 for the default", leastLinkMTU, mostLinkMTU))
	}
	return nil
}

// completeWires checks adapters that are functions at one port: they are told apart by MAC and VLAN, and only the first
// describes the port.
func (c *Config) completeWires() error {
	for i := range c.Adapters {
		a := &c.Adapters[i]
		first := c.FirstOnWire(i)
		if first == i {
			continue
		}
		o := &c.Adapters[first]
		field := func(name string) string { return fmt.Sprintf("adapters[%d].%s", i, name) }
		switch {
		case a.MAC == "":
			return api.Wrong(field("mac"), "missing", fmt.Sprintf("a MAC of its own, beside %q on the same wire", o.Name))
		case a.Peer != o.Peer, a.LinkMTU != 0 && a.LinkMTU != o.LinkMTU, a.ReceiveBuffer != 0 && a.ReceiveBuffer != o.ReceiveBuffer,
			a.Speed != 0 && a.Speed != o.Speed, a.LimitSpeed && !o.LimitSpeed:
			return api.Wrong(field("peer, link_mtu, receive_buffer, speed, limit_speed"), "given", fmt.Sprintf("what %q has, which is first on the wire", o.Name))
		}
		for j := range i {
			if b := &c.Adapters[j]; a.SameWire(b) && a.StationMAC() == b.StationMAC() && a.VLAN == b.VLAN {
				return api.Wrong(field("mac"), fmt.Sprintf("%q again", a.MAC), fmt.Sprintf("another MAC or VLAN than that of %q on the same wire", b.Name))
			}
		}
	}
	return nil
}

// FirstOnWire returns the first adapter at the port of adapter i: i itself, unless whole frames of both are on one wire.
func (c *Config) FirstOnWire(i int) int {
	for j := range i {
		if c.Adapters[i].SameWire(&c.Adapters[j]) {
			return j
		}
	}
	return i
}

// WireName returns what packets of an adapter travel on that is on no fabric.
func (a *Adapter) WireName() string {
	switch {
	case a.Link == LinkInterface:
		return "interface " + a.Interface
	case a.Link == LinkTAP:
		return "TAP " + a.Interface
	case a.Link == LinkDatagram:
		return "datagram socket " + a.Datagram
	case a.Link == LinkSwitch:
		return "switch " + a.Switch
	case a.Link == LinkTeam:
		return a.Team.String()
	}
	return "UDP sockets"
}

// WireMAC is the address that an adapter on a wire of whole frames has, and that its wire has in a team.
func (a *Adapter) WireMAC() [6]byte {
	if mac := a.StationMAC(); mac != [6]byte{} {
		return mac
	}
	if n, err := net.InterfaceByName(a.Interface); a.Link == LinkInterface && err == nil && len(n.HardwareAddr) == 6 {
		return [6]byte(n.HardwareAddr)
	}
	return gid.MAC(a.Address)
}
