package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/tun"
	"github.com/softvpi/softvpi/wire/mad"
)

// The kinds of links of an adapter's port.
const (
	LinkUDP   = "udp"
	LinkCable = "cable"
	LinkVPI   = "vpi" // either
)

// Fabric is the InfiniBand fabric of the adapters with a cable. The zero value is a switch in the driver
// that joins all of them.
type Fabric struct {
	// Connect is a fabric that another process runs: its name, the path of its socket, or udp://HOST:PORT
	// if it is on another host. No other field may be set then, except Key with UDP.
	Connect string `json:"connect,omitempty"`
	// Netlist is a file in the format of ibnetdiscover; empty: one switch with the adapters.
	Netlist string `json:"netlist,omitempty"`
	// Rate is width and speed of the single switch's links, such as 4xEDR; empty: 4xEDR.
	Rate string `json:"rate,omitempty"`
	// Timing delays packets by the transmission time of their links.
	Timing bool `json:"timing,omitempty"`
	// Name lets other processes plug in and attach, at sockets of this name as for fabric run; empty: they
	// cannot.
	Name string `json:"name,omitempty"`
	// Cables is an address and port of this machine for adapters of other hosts to connect over UDP;
	// empty: they cannot.
	Cables string `json:"cables,omitempty"`
	// Key is a file with the shared secret of both ends of cables over UDP; empty: none.
	Key string `json:"key,omitempty"`
}

// SubnetManager is the subnet manager that the driver runs in its fabric. In JSON it may be true or false
// instead of an object.
type SubnetManager struct {
	Off bool `json:"off,omitempty"`
	// Priority is 0 to 15.
	Priority uint8 `json:"priority,omitempty"`
	// Routing are routing engines, in order of preference; none: min-hop.
	Routing []string `json:"routing,omitempty"`
	// Partitions is a file in the format of partitions.conf.
	Partitions string `json:"partitions,omitempty"`
	// LMC is 0 to 7.
	LMC uint8 `json:"lmc,omitempty"`
	// Dir is a directory in which the ports' LIDs and registrations are kept between starts; empty: they
	// are not kept.
	Dir string `json:"dir,omitempty"`
	// VirtEnable is what it does about virtual ports, 0 to 2 as in OpenSM's options file; nil: 2, it enables them.
	VirtEnable *uint8 `json:"virt_enable,omitempty"`
}

// Virtual returns what it does about virtual ports.
func (s *SubnetManager) Virtual() subnet.Virtualization {
	if s.VirtEnable == nil {
		return subnet.VirtualEnable
	}
	return subnet.Virtualization(*s.VirtEnable)
}

// UnmarshalJSON accepts true, false or an object.
func (s *SubnetManager) UnmarshalJSON(b []byte) error {
	switch strings.TrimSpace(string(b)) {
	case "true":
		*s = SubnetManager{}
		return nil
	case "false":
		*s = SubnetManager{Off: true}
		return nil
	}
	if len(b) == 0 || b[0] != '{' {
		return api.Wrong("subnet_manager", string(b[:min(len(b), 40)]), "true, false or an object")
	}
	type plain SubnetManager
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode((*plain)(s))
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		kind.Field = "subnet_manager." + kind.Field
	}
	return err
}

// defaultRate is that of the single switch's links.
var defaultRate = topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR}

// LinkRate returns the rate of the single switch's links.
func (f *Fabric) LinkRate() (topology.Rate, error) {
	if f.Rate == "" {
		return defaultRate, nil
	}
	r, ok := topology.ParseRate(f.Rate)
	if !ok {
		return r, api.Wrong("fabric.rate", fmt.Sprintf("%q", f.Rate),
			"1x, 2x, 4x, 8x or 12x with SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR, such as 4xEDR")
	}
	return r, nil
}

// complete checks the configuration of a fabric.
func (f *Fabric) complete() error {
	if f == nil {
		return nil
	}
	remote := strings.HasPrefix(f.Connect, cable.Scheme)
	if f.Connect != "" && *f != (Fabric{Connect: f.Connect}) && (!remote || *f != (Fabric{Connect: f.Connect, Key: f.Key})) {
		return api.Wrong("fabric.connect", fmt.Sprintf("%q, with other fields", f.Connect),
			"no other fields (but a key, over UDP): the process that runs the fabric configures the rest")
	}
	if remote {
		_, _, err := cable.ParseUDP(f.Connect)
		if err != nil {
			err = api.Wrong("fabric.connect", fmt.Sprintf("%q", f.Connect),
				"udp://HOST or udp://HOST:PORT, with an IPv6 address in brackets")
		}
		return err
	}
	for name, v := range map[string]string{"fabric.connect": f.Connect, "fabric.name": f.Name} {
		if !filepath.IsAbs(v) && (len(v) > 64 || strings.ContainsAny(v, "/\\\x00 ")) || name == "fabric.name" && filepath.IsAbs(v) {
			return api.Wrong(name, fmt.Sprintf("%q", v), "1 to 64 characters without spaces and slashes")
		}
	}
	if _, err := netip.ParseAddrPort(f.Cables); f.Cables != "" && err != nil {
		return api.Wrong("fabric.cables", fmt.Sprintf("%q", f.Cables),
			"an address and a port of this machine, such as 192.0.2.1:7069 or [::]:7069")
	}
	if f.Key != "" && f.Cables == "" {
		return api.Wrong("fabric.key", fmt.Sprintf("%q", f.Key), "nothing without cables over UDP")
	}
	if f.Netlist != "" && f.Rate != "" {
		return api.Wrong("fabric.rate", fmt.Sprintf("%q", f.Rate), "nothing with a netlist, which contains the rates")
	}
	_, err := f.LinkRate()
	return err
}

// complete checks the configuration of a subnet manager.
func (s *SubnetManager) complete() error {
	if s == nil {
		return nil
	}
	if s.Priority > 15 {
		return api.Wrong("subnet_manager.priority", fmt.Sprint(s.Priority), "0 to 15")
	}
	if s.LMC > 7 {
		return api.Wrong("subnet_manager.lmc", fmt.Sprint(s.LMC), "0 to 7")
	}
	if s.VirtEnable != nil && *s.VirtEnable > uint8(subnet.VirtualEnable) {
		return api.Wrong("subnet_manager.virt_enable", fmt.Sprint(*s.VirtEnable), "0 (leave virtual ports alone), 1 (disable them), 2 (enable them)")
	}
	for _, e := range s.Routing {
		if !slices.Contains(routing.EngineNames(), e) {
			return api.Wrong("subnet_manager.routing", fmt.Sprintf("%q", e), strings.Join(routing.EngineNames(), ", "))
		}
	}
	return nil
}

// Cable reports whether the port can be InfiniBand.
func (a *Adapter) Cable() bool { return a.Link == LinkCable || a.Link == LinkVPI }

// Ethernet reports whether the port can be Ethernet.
func (a *Adapter) Ethernet() bool { return a.Link != LinkCable }

// Protocols returns what the port can be, as named in status output.
func (a *Adapter) Protocols() (names []string) {
	if a.Cable() {
		names = append(names, "ib")
	}
	if a.Ethernet() {
		names = append(names, "eth")
	}
	return names
}

// checkInterface checks the name of a network interface.
func (a *Adapter) checkInterface(field func(string) string) error {
	if len(a.Interface) > tun.MaxName || strings.ContainsAny(a.Interface, "/ %") || a.Interface == "." || a.Interface == ".." {
		return api.Wrong(field("interface"), fmt.Sprintf("%q", a.Interface),
			fmt.Sprintf("the name of a network interface, at most %d bytes without space, / and %%", tun.MaxName))
	}
	return nil
}

// completeCable checks the configuration of an adapter with a cable.
func (a *Adapter) completeCable(field func(string) string) error {
	if a.Port != 0 && a.Node == "" {
		return api.Wrong(field("port"), fmt.Sprint(a.Port), "nothing without a node")
	}
	if err := a.checkInterface(field); err != nil {
		return err
	}
	if a.Link == LinkVPI {
		return nil
	}
	for name, given := range map[string]bool{
		"follow_interface": a.FollowInterface, "any_source_port": a.AnySourcePort, "udp_port": a.UDPPort != 0,
		"roce_max_frame_size": a.RoceMaxFrameSize != 0,
		"speed":               a.Speed != 0,
		"receive_buffer":      a.ReceiveBuffer != 0, "frames": a.Frames != "",
	} {
		if given {
			return api.Wrong(field(name), "given", `nothing with "link": "cable", whose port has no Ethernet`)
		}
	}
	return nil
}
