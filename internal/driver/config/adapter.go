package config

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/wire/eth"
)

// Adapter describes one adapter. Its registry keys override these values.
type Adapter struct {
	Name string `json:"name"`
	// Generation is "mlx5" (ConnectX-4 class and later) or "mlx4" (ConnectX-3 class): it determines the
	// adapter's keys, defaults and names; empty: mlx5.
	Generation string `json:"generation,omitempty"`
	// Link is "udp" (sockets, which carry RoCE v2 alone), "interface", "tap", "datagram", "switch", "fabric" or "team" for whole Ethernet
	// frames, "cable" for a port of an InfiniBand fabric, or "vpi" for one that can be udp or cable; empty: udp.
	Link string `json:"link,omitempty"`
	// Device is the device to which this port belongs, as its first or second, in order; empty: one of its
	// own.
	Device string `json:"device,omitempty"`
	// Node is the node of the fabric, by its id or description, to whose port Port (0: the first) the
	// cable is connected, or the host of an Ethernet fabric; empty: the first that is free.
	Node string `json:"node,omitempty"`
	Port uint8  `json:"port,omitempty"`
	// Address is the port's. A cable needs none; if given, programs can use it for the port in addition to
	// its GID.
	Address netip.Addr `json:"address,omitzero"`
	// Interface is the name of the system's network interface: for IPoIB on an InfiniBand port, on Linux and with the right
	// to create one, empty: none; or on which, or from whose other side, a link of whole frames is.
	Interface string `json:"interface,omitempty"`
	// Team is given with "link": "team", and with InfiniBand ports for a team of IPoIB interfaces.
	Team *Team `json:"team,omitempty"`
	Wire
	HostSide
	// FollowInterface keeps every address of the interface that has Address in the GID table.
	FollowInterface bool `json:"follow_interface,omitempty"`
	// UDPPort is the RoCE v2 destination port (roce_udp_dport); 0 means 4791.
	UDPPort uint16 `json:"udp_port,omitempty"`
	// RoceMaxFrameSize is the largest payload of a packet in bytes; 0: from the
	// MTU of the interface.
	RoceMaxFrameSize uint32 `json:"roce_max_frame_size,omitempty"`
	// Path is "auto", "wire", "local" or "direct"; empty means auto.
	Path string `json:"path,omitempty"`
	// Impairment is what the link does to packets, in the syntax of `softvpi link set`: "loss=1%
	// delay=50us seed=7".
	Impairment string `json:"impairment,omitempty"`
	// RoceRcE2EFlowControlEnable says whether RC connections use end-to-end credits; absent: true (the
	// registry key of that name).
	RoceRcE2EFlowControlEnable *bool `json:"roce_rc_e2e_flow_control_enable,omitempty"`
	// MaxCMRetries is how often a message of the connection manager is retransmitted, 1 to 15; 0: 15.
	MaxCMRetries int `json:"max_cm_retries,omitempty"`
	// ReceiveBuffer is the size of the socket's receive buffer in bytes; 0: as
	// large as the system allows.
	ReceiveBuffer int `json:"receive_buffer,omitempty"`
	// Frames is "auto", "on" or "off": whether short packets are sent as Ethernet frames beside the UDP
	// socket; empty means auto.
	Frames string `json:"frames,omitempty"`
	// AnySourcePort accepts packets of a connection from any UDP port of its peer's address.
	AnySourcePort bool `json:"any_source_port,omitempty"`
	// Speed of the link in Gb/s, 10, 25, 40, 50, 56 or 100; 0: the wire's own. With LimitSpeed the link carries no more.
	Speed      uint32 `json:"speed,omitempty"`
	LimitSpeed bool   `json:"limit_speed,omitempty"`
	Disabled   bool   `json:"disabled,omitempty"`
}

// defaultAdapters are the adapters of a driver that is given none. macOS has
// only 127.0.0.1 on its loopback interface, so there it is one.
func defaultAdapters() []Adapter {
	if runtime.GOOS == "darwin" {
		return []Adapter{{Name: "Ethernet 1", Address: netip.MustParseAddr("127.0.0.1")}}
	}
	return []Adapter{
		{Name: "Ethernet 1", Address: netip.MustParseAddr("127.0.0.2")},
		{Name: "Ethernet 2", Address: netip.MustParseAddr("127.0.0.3")},
	}
}

// speeds are those of the manuals' cards on Ethernet, in Gb/s.
var speeds = []uint32{10, 25, 40, 50, 56, 100}

const (
	maxAdapters   = 64
	maxNameLength = 63
)

// complete fills in the defaults of adapter number i and checks it.
func (a *Adapter) complete(i int) error {
	field := func(name string) string { return fmt.Sprintf("adapters[%d].%s", i, name) }
	switch a.Link {
	case "", LinkUDP, LinkInterface, LinkTAP, LinkDatagram, LinkSwitch, LinkFabric, LinkTeam, LinkCable, LinkVPI:
	default:
		return api.Wrong(field("link"), fmt.Sprintf("%q", a.Link), "udp, interface, tap, datagram, switch, fabric, team, cable, vpi")
	}
	if a.Name == "" {
		a.Name = fmt.Sprintf("%s %d", map[bool]string{false: "Ethernet", true: "InfiniBand"}[a.Link == LinkCable], i+1)
	}
	if a.Cable() {
		if err := a.completeCable(field); err != nil {
			return err
		}
	} else if !a.WholeFrames() && (a.Node != "" || a.Port != 0) {
		return api.Wrong(field("node"), "given", `nothing without "link": "cable" or "vpi"`)
	}
	if a.UDPPort == 0 && a.Link != LinkCable {
		a.UDPPort = eth.PortRoCEv2
	}
	if _, err := ParseGeneration(a.Generation); err != nil {
		err.Field = field("generation")
		return err
	}
	if !a.Address.IsValid() && a.Link != LinkCable {
		return api.Wrong(field("address"), "missing", "an IPv4 or IPv6 address of this machine")
	}
	a.Address = a.Address.Unmap()
	if a.Address.IsValid() && a.Address.IsUnspecified() || a.Address.IsMulticast() {
		return api.Wrong(field("address"), a.Address.String(), map[bool]string{true: "an IPv4 or IPv6 address of one port",
			false: "an IPv4 or IPv6 address of this machine"}[a.Link == LinkCable || a.WholeFrames()])
	}
	if len(a.Name) > maxNameLength {
		return api.Wrong(field("name"), fmt.Sprintf("%d bytes long", len(a.Name)), fmt.Sprintf("up to %d bytes", maxNameLength))
	}
	if err := a.completeTeam(field); err != nil {
		return err
	}
	if err := a.completeWire(field); err != nil {
		return err
	}
	if err := a.completeHost(field); err != nil {
		return err
	}
	switch a.RoceMaxFrameSize {
	case 0, 256, 512, 1024, 2048, 4096:
	default:
		return api.Wrong(field("roce_max_frame_size"), fmt.Sprint(a.RoceMaxFrameSize), "256, 512, 1024, 2048, 4096, or 0 for automatic")
	}
	if a.Speed != 0 && !slices.Contains(speeds, a.Speed) {
		return api.Wrong(field("speed"), fmt.Sprint(a.Speed), "10, 25, 40, 50, 56, 100 (Gb/s), or 0 for the wire's own")
	}
	if a.LimitSpeed && a.Speed == 0 {
		return api.Wrong(field("limit_speed"), "given", "nothing without speed")
	}
	if a.MaxCMRetries < 0 || a.MaxCMRetries > 15 {
		return api.Wrong(field("max_cm_retries"), fmt.Sprint(a.MaxCMRetries), "1 to 15, or 0 for 15")
	}
	if a.ReceiveBuffer < 0 || a.ReceiveBuffer > 1<<30 {
		return api.Wrong(field("receive_buffer"), fmt.Sprint(a.ReceiveBuffer), "0 (as large as allowed) to 1073741824 bytes")
	}
	if _, ok := packet.ParseMode(a.Frames); !ok {
		return api.Wrong(field("frames"), fmt.Sprintf("%q", a.Frames), strings.Join(packet.Modes, ", "))
	}
	if _, err := ParsePath(a.Path); err != nil {
		err.Field = field("path")
		return err
	}
	if _, err := (impair.Impairment{}).Parse(a.Impairment); err != nil {
		return fmt.Errorf("%s: %w", field("impairment"), err)
	}
	return nil
}

// ParsePath parses the path of an adapter's connections.
func ParsePath(s string) (device.PathPolicy, *api.FieldError) {
	switch s {
	case "", "auto":
		return device.PathAuto, nil
	case "wire":
		return device.PathWire, nil
	case "local":
		return device.PathLocal, nil
	case "direct":
		return device.PathDirect, nil
	}
	return 0, api.Wrong("path", fmt.Sprintf("%q", s), "auto, wire, local, direct")
}

// ParseGeneration parses the generation of an adapter.
func ParseGeneration(s string) (catalogue.Generation, *api.FieldError) {
	switch s {
	case "", "mlx5":
		return catalogue.MLX5, nil
	case "mlx4":
		return catalogue.MLX4, nil
	}
	return 0, &api.FieldError{Field: "generation", Value: fmt.Sprintf("%q", s), Allowed: "mlx5, mlx4"}
}

// ParseAdapter parses an adapter on a command line: name=address, with options after commas: "Ethernet
// 1=127.0.0.2,port=4791,mtu=1024,path=wire".
func ParseAdapter(s string) (Adapter, error) {
	const form = `NAME=ADDRESS[,port=1-65535][,mtu=256|512|1024|2048|4096][,path=auto|wire|local|direct][,frames=auto|on|off][,generation=mlx5|mlx4][,device=NAME][,anyport][,follow][,speed=10|25|40|50|56|100[,limit]], NAME=ADDRESS[/LENGTH],interface=NAME|tap=NAME|datagram=PATH|switch=NAME|fabric[=HOST]|team,of=NAME|team[=TYPE],members=interface|tap|switch|datagram:NAME[:primary][:teammac][+...][,hash=L2|L3|L4][,nofailback][,slow][,passive][,choice=stable|bandwidth|count][,peer=PATH][,pvid=1-4094][,trunk=VLANS][,gateway=ADDRESS][,mac=MAC][,vlan=1-4094][,noprobes][,linkmtu=576-65521][,host=tap:NAME|datagram:PATH|stream:PATH][,hostpeer=PATH][,wake=PROGRAM][,...], or NAME=cable[,node=NODE][,ibport=1-254][,address=ADDRESS][,interface=NAME][,device=NAME][,team[=AFT],members=adapter:NAME[:primary][+...][,nofailback]]`
	var a Adapter
	parts := strings.Split(s, ",")
	name, addr, ok := strings.Cut(parts[0], "=")
	if !ok {
		return a, api.Wrong("--adapter", fmt.Sprintf("%q", s), form)
	}
	a.Name = name
	var err error
	if addr == LinkCable {
		a.Link = LinkCable
	} else if a.Address, a.Prefix, err = parseNetwork(addr); err != nil {
		return a, api.Wrong("--adapter", fmt.Sprintf("%q", s), form)
	}
	given := map[string]bool{"address": a.Address.IsValid()}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		if given[key] {
			return a, api.Wrong("--adapter option", fmt.Sprintf("%q, after another %s", p, key), "each once")
		}
		given[key] = true
		switch key {
		case "port":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.UDPPort)
			if a.UDPPort == 0 {
				err = errors.New("zero")
			}
		case "mtu":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.RoceMaxFrameSize)
		case "path":
			a.Path = value
		case "frames":
			a.Frames = value
		case "generation":
			a.Generation = value
		case "device":
			a.Device = value
		case "node":
			a.Node = value
		case "ibport":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.Port)
		case "address":
			a.Address, err = netip.ParseAddr(value)
		case "interface":
			if a.Interface = value; a.Link == "" {
				a.Link = LinkInterface
			}
		case "tap":
			a.Interface, err = value, a.choose(LinkTAP)
		case "datagram":
			a.Datagram, err = value, a.choose(LinkDatagram)
		case "peer":
			a.Peer = value
		case "switch":
			a.Switch, err = value, a.choose(LinkSwitch)
		case "fabric":
			a.Node, err = value, a.choose(LinkFabric)
		case "team":
			if a.team().Type = value; a.Link != LinkCable {
				err = a.choose(LinkTeam)
			}
		case "members":
			a.team().Members, err = parseMembers(value)
		case "of":
			a.team().Of = value
		case "hash":
			a.team().Hash = value
		case "nofailback":
			a.team().NoFailBackToPrimary = true
		case "slow":
			a.team().SlowLACP = true
		case "passive":
			a.team().PassiveLACP = true
		case "choice":
			a.team().LACPChoice = value
		case "pvid":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.PVID)
			if a.PVID == 0 {
				err = errors.New("zero")
			}
		case "trunk":
			a.Trunk = value
		case "gateway":
			a.Gateway, err = netip.ParseAddr(value)
		case "mac":
			a.MAC = value
		case "vlan":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.VLAN)
		case "linkmtu":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.LinkMTU)
		case "host":
			a.Host = value
		case "hostpeer":
			a.HostPeer = value
		case "wake":
			a.Wake = []string{value}
		case "speed":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.Speed)
			if a.Speed == 0 {
				err = errors.New("zero")
			}
		case "limit":
			a.LimitSpeed = true
		case "noprobes":
			a.NoProbes = true
		case "anyport":
			a.AnySourcePort = true
		case "follow":
			a.FollowInterface = true
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return a, api.Wrong("--adapter option", fmt.Sprintf("%q", p), form)
		}
	}
	return a, a.complete(0)
}

// choose makes an adapter's link one of a kind, if it is of none yet.
func (a *Adapter) choose(link string) error {
	if a.Link != "" {
		return errors.New("another link")
	}
	a.Link = link
	return nil
}

// parseNetwork parses an address, or one with the length of its network behind a slash.
func parseNetwork(s string) (netip.Addr, int, error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		return a, 0, err
	}
	p, err := netip.ParsePrefix(s)
	return p.Addr(), max(p.Bits(), 0), err
}
