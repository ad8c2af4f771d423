package ibstat

import (
	"math"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// fabricDevices returns the adapter in the InfiniBand fabric named by the environment, with all ports that
// programs of this node may open. The error is umad.ErrNoFabric if it names none.
func fabricDevices() ([]device, error) {
	o, err := umad.FromEnvironment()
	if err != nil {
		return nil, err
	}
	first, err := umad.Open()
	if err != nil {
		return nil, err
	}
	defer first.Close()
	d := fabricDevice(first.Device())
	for n := 1; o.Service.Socket != "" && first.Device().PortNum > 0 && n <= first.Device().Ports; n++ {
		if n == 1 {
			d.Ports = nil
		}
		o.Service.Port = n
		p, err := o.Open()
		if err != nil {
			return nil, err
		}
		d.Ports = append(d.Ports, fabricDevice(p.Device()).Ports...)
		if err := p.Close(); err != nil {
			return nil, err
		}
	}
	return []device{d}, nil
}

func fabricDevice(d umad.Device) device {
	i := &d.Port
	p := port{
		Number: d.PortNum, GUID: d.Node.PortGUID, Up: i.PortState == mad.PortActive, State: i.PortState, Physical: i.PortPhysicalState,
		LID: i.LID, LMC: i.LMC, SMLID: i.MasterSMLID, Caps: i.CapabilityMask, Layer: d.LinkLayer, Lanes: mad.Lanes(i.LinkWidthActive),
		Rate: fabricRate(i), Transport: "IB", MaxMTU: bytesOf(i.MTUCap), ActiveMTU: bytesOf(i.NeighborMTU),
	}
	var gid [16]byte
	for n := range 8 {
		gid[n], gid[8+n] = byte(i.GIDPrefix>>(56-8*n)), byte(d.Node.PortGUID>>(56-8*n))
	}
	p.GIDs = []string{groups(gid)}
	kind := ""
	switch d.Node.NodeType {
	case mad.NodeSwitch:
		kind = "Switch"
	case mad.NodeRouter:
		kind = "Router"
	}
	return device{
		Name: d.Name, Kind: kind, Board: d.Type, Firmware: d.Firmware, Hardware: d.Hardware, VendorID: int(d.Node.VendorID),
		PartID:   int(d.Node.DeviceID),
		NodeGUID: d.Node.NodeGUID, ImageGUID: d.Node.SystemImageGUID, Ports: []port{p},
	}
}

// fabricRate returns the nominal rate of a link in Gb/s: 14 for a lane that signals 14.0625.
func fabricRate(i *mad.PortInfo) float64 {
	lane := i.ActiveSpeed().LaneMbps() / 1000
	switch s := i.ActiveSpeed(); {
	case s >= mad.SpeedHDR:
		lane = map[mad.Speed]float64{mad.SpeedHDR: 50, mad.SpeedNDR: 100, mad.SpeedXDR: 200}[s]
	case s > mad.SpeedQDR:
		lane = math.Floor(lane)
	}
	return lane * float64(mad.Lanes(i.LinkWidthActive))
}

// bytesOf returns the size for an MTU code, 0 if it is invalid.
func bytesOf(code ib.MTU) uint32 {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}
