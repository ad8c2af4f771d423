// Package ibstat holds the tools that show the attributes of this machine's adapters: vstat and ibstat (WinOF
// 5.50, "Utility Description") and MlxStat, which replaces both in WinOF-2 (WinOF-2 1.21, "Utilities").
package ibstat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	vendorID = 0x02c9

	// maxMTU is the maximum payload of a packet (IBA 9.2).
	maxMTU = 4096
	// unknownSpeed is the rate, in Gb/s, of a port that does not report its own: one lane of SDR, which
	// Linux uses for Ethernet devices without a speed.
	unknownSpeed = 2.5
)

// device is what the tools show of a device. A port that is down, disabled or polling is Down.
type device struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	Kind       string `json:"kind,omitempty"` // Switch or Router; empty: a channel adapter
	Generation string `json:"generation"`
	Firmware   string `json:"firmware"`
	VendorID   int    `json:"vendor_id"`
	PartID     int    `json:"vendor_part_id"`
	Board      string `json:"board,omitempty"` // if it does not follow from the part
	Hardware   string `json:"hardware"`
	NodeGUID   uint64 `json:"node_guid"`
	ImageGUID  uint64 `json:"system_image_guid"`
	Location   string `json:"location,omitempty"`
	Ports      []port `json:"ports"`
}

// port is what the tools show of a port.
type port struct {
	Number    int                   `json:"port"`
	Name      string                `json:"interface,omitempty"` // of the adapter
	GUID      uint64                `json:"port_guid"`
	Up        bool                  `json:"up"`
	State     mad.PortState         `json:"state"`
	Physical  mad.PortPhysicalState `json:"physical_state"`
	LID       ib.LID                `json:"lid"`
	LMC       uint8                 `json:"lmc"`
	SMLID     ib.LID                `json:"sm_lid"`
	Caps      uint32                `json:"capability_mask"`
	Layer     string                `json:"link_layer"`
	Lanes     int                   `json:"lanes"`
	Rate      float64               `json:"rate_gbps"`
	Transport string                `json:"transport"`
	MaxMTU    uint32                `json:"max_mtu"`
	ActiveMTU uint32                `json:"active_mtu"`
	GIDs      []string              `json:"gids"`
	status    *api.AdapterStatus    // nil: in the fabric that the environment names
}

// portCapabilities says that the port has a CM (IBA 14.2.5.6, IsCommunicationManagementSupported).
const portCapabilities = mad.CapIsCommunicationManagementSupported

// devices returns those of the driver or, if the environment names an InfiniBand fabric and the user gave
// no socket, the one there.
func devices(ctx context.Context, socket string) ([]device, error) {
	if socket == "" {
		if list, err := fabricDevices(); !errors.Is(err, umad.ErrNoFabric) {
			return list, err
		}
	}
	s, err := api.NewClient(socket).Status(ctx)
	if err != nil {
		return nil, err
	}
	list := []device{}
	for _, x := range s.Devices() {
		list = append(list, describe(x))
	}
	return list, nil
}

func describe(x api.Device) device {
	d := device{
		Index: x.Index, Name: x.Name, Generation: x.First().Generation, Firmware: x.First().Firmware.Version, VendorID: vendorID,
		PartID: x.First().Class().PartID(), Hardware: "0",
		NodeGUID: x.NodeGUID, ImageGUID: x.NodeGUID, Location: x.Location().Text(),
	}
	for _, a := range x.Ports {
		d.Ports = append(d.Ports, portOf(a))
	}
	return d
}

// portOf describes the port that an adapter is.
func portOf(a *api.AdapterStatus) port {
	p := port{
		Number: a.Port, Name: a.Name, GUID: a.GUID, Up: a.Enabled && a.Up, Rate: rate(a), Transport: transport(a.RoCE), MaxMTU: maxMTU,
		ActiveMTU: a.ActiveMTU,
		State:     mad.PortDown, Physical: mad.PhysicalDisabled, Caps: portCapabilities, Layer: "Ethernet", Lanes: 1, status: a,
	}
	if p.Up {
		p.State, p.Physical = mad.PortActive, mad.PhysicalLinkUp
	} else {
		p.Rate = 0
	}
	if n := a.InfiniBand; n != nil {
		p.onFabric(n)
	}
	for _, g := range a.GIDs {
		p.GIDs = append(p.GIDs, groups(g.GID.As16()))
	}
	return p
}

// onFabric shows an InfiniBand port.
func (p *port) onFabric(n *api.InfiniBandStatus) {
	p.Layer, p.Transport, p.GUID = "InfiniBand", "IB", n.PortGUID
	p.Rate = float64(n.Mbps) / 1000 // 0 without a link
	p.LID, p.LMC, p.SMLID, p.MaxMTU = ib.LID(n.LID), n.LMC, ib.LID(n.SMLID), uint32(n.MaxMTU)
	for s := mad.PortDown; s <= mad.PortActive; s++ {
		if s.String() == n.State {
			p.State = s
		}
	}
	for s := mad.PhysicalSleep; s <= mad.PhysicalPhyTest; s++ {
		if s.String() == n.Physical {
			p.Physical = s
		}
	}
	if width, _, ok := strings.Cut(n.Rate, "x"); ok {
		if lanes, err := strconv.Atoi(width); err == nil {
			p.Lanes = lanes
		}
	}
}

// rate returns the rate of a link in Gb/s.
func rate(a *api.AdapterStatus) float64 {
	if n := a.Speed; n != 0 {
		return float64(n) / 1e9
	}
	return unknownSpeed
}

// transport returns the name that vstat and ibstat use for a RoCE mode (WinOF 5.50, change log).
func transport(roce string) string {
	switch roce {
	case "", "none", "off":
		return "No RoCE"
	case "v1":
		return "RoCE v1.0"
	case "v1.25":
		return "RoCE v1.25"
	}
	return "RoCE v2.0"
}

// mtuCode returns the number by which InfiniBand encodes an MTU (IBA 14.2.5.6): 1 for 256 bytes.
func mtuCode(bytes uint32) int {
	code := 0
	for n := uint32(256); n <= bytes; n *= 2 {
		code++
	}
	return code
}

// guid formats a GUID like vstat: four groups.
func guid(g uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
}

// groups formats a GID with all of its digits.
func groups(b [16]byte) string {
	var s []string
	for i := 0; i < len(b); i += 2 {
		s = append(s, fmt.Sprintf("%02x%02x", b[i], b[i+1]))
	}
	return strings.Join(s, ":")
}

func gbps(r float64) string { return strconv.FormatFloat(r, 'f', -1, 64) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// pick returns the device with that name, number from 0, or adapter among its ports; all if name is empty.
func pick(list []device, name string) ([]device, error) {
	if name == "" {
		return list, nil
	}
	var names []string
	for _, d := range list {
		if strings.EqualFold(d.Name, name) || strconv.Itoa(d.Index) == name {
			return []device{d}, nil
		}
		if slices.ContainsFunc(d.Ports, func(p port) bool { return strings.EqualFold(p.Name, name) }) {
			return []device{d}, nil
		}
		names = append(names, strconv.Quote(d.Name))
	}
	return nil, &api.FieldError{Field: "adapter", Value: strconv.Quote(name), Allowed: strings.Join(names, ", ") + ", or its number from 0"}
}

// started adds the options that the tools have in common.
func started(env tool.Env, synopsis string) (f *tool.Flags, socket *string, asJSON *bool) {
	f = tool.NewFlags(env, synopsis)
	socket = f.String("socket", "", "`path` of the driver's socket")
	asJSON = f.Bool("json", false, "print JSON")
	return f, socket, asJSON
}
