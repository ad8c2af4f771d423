package sriov

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/catalogue"
)

const (
	// MostPerPort is how many virtual functions a port has at most (WinOF-2 24.4, Single Root I/O Virtualization).
	MostPerPort = 127
	// MostPerDevice is how many all ports of a ConnectX-3 class device have together (WinOF 5.50, 4.5.3 and 4.5.3.4.1.2).
	MostPerDevice = 126
	// Usual is how many there are unless somebody says otherwise (SRIOV_EN=1 NUM_OF_VFS=16; MaxVFPortX).
	Usual = 16
	// Allowed is how many the operating system allows an interface until that is raised with Set-NetAdapterSriov -NumVFs (WinOF-2
	// 24.4, Enabling SR-IOV in Firmware).
	Allowed = 32
)

// PortMode is SriovPortMode: how the pool of a ConnectX-3 class device is divided between its ports.
type PortMode uint8

// The modes. In AutoPort1 and AutoPort2 the named port has all that the device's configuration allows, and the other none: it is
// plain Ethernet, without RoCE. In Manual each has what MaxVFPort1 and MaxVFPort2 say (WinOF 5.50, 4.6.9.1).
const (
	AutoPort1 PortMode = iota
	AutoPort2
	Manual
)

// Device is what the configuration of a device says about virtual functions.
type Device struct {
	Generation catalogue.Generation
	// Enabled is SRIOV_EN, Total NUM_OF_VFS: of each port, or with MLX4 of the device.
	Enabled bool
	Total   uint32
	// Permit, Mode and MaxVFPort are the MLX4 keys PermitSriov, SriovPortMode, and MaxVFPort1 and 2.
	Permit    bool
	Mode      PortMode
	MaxVFPort [2]uint32
	// Ports are its ports, one or two.
	Ports []Port
}

// Port is what is known about a port of the device.
type Port struct {
	// Offered is *SRIOV, Allowed is *NumVFs of its interface.
	Offered bool
	Allowed uint32
	// InfiniBand says that it is no Ethernet port.
	InfiniBand bool
	// Rows is for how many virtual functions an InfiniBand port has GIDs.
	Rows uint32
	// Wire says why its wire has no room for other functions; empty: it has.
	Wire string
}

// Support is what Get-NetAdapterSriov prints as SriovSupport. The manuals print NoVfBarSpace (WinOF-2 24.4, Verifying Sufficient
// Resources are Available in the Adapter to Enable SR-IOV VFs), for adapters that have no room for their virtual functions.
type Support uint8

// The values.
const (
	Unknown Support = iota // SR-IOV is not on
	Supported
	NoVfBarSpace
)

var supports = [...]string{"Unknown", "Supported", "NoVfBarSpace"}

func (s Support) String() string {
	if int(s) < len(supports) {
		return supports[s]
	}
	return fmt.Sprintf("Support(%d)", uint8(s))
}

// Grant is what a port gets.
type Grant struct {
	// VFs is how many virtual functions it may have; Requested how many its interface asked for.
	VFs, Requested uint32
	Support        Support
	// Cause says why it has none, or fewer than requested; empty: it has all of them.
	Cause string
	// NoRoCE says that the port is plain Ethernet, since the other has all virtual functions.
	NoRoCE bool
}

// Grants returns what each port of the device gets.
func (d *Device) Grants() []Grant {
	out := make([]Grant, len(d.Ports))
	for i := range d.Ports {
		out[i] = d.grant(i)
	}
	return out
}

func (d *Device) grant(i int) Grant {
	p := &d.Ports[i]
	g := Grant{Requested: p.Allowed}
	if cause := d.off(p); cause != "" {
		g.Cause = cause
		return g
	}
	if p.Wire != "" {
		g.Support, g.Cause = NoVfBarSpace, p.Wire
		return g
	}
	g.Support = Supported
	share := d.share(i)
	if p.InfiniBand {
		share = min(share, p.Rows)
	}
	g.VFs = min(share, p.Allowed)
	g.NoRoCE = d.Generation == catalogue.MLX4 && d.Mode != Manual && int(d.Mode) != i
	switch {
	case g.NoRoCE:
		g.Cause = fmt.Sprintf("SriovPortMode is %d: port %d has all virtual functions", d.Mode, d.Mode+1)
	case share == 0:
		g.Cause = "the device's configuration has none for the port"
	case g.VFs < g.Requested:
		g.Cause = fmt.Sprintf("the device's configuration allows the port %d of %d", share, g.Requested)
	}
	return g
}

// off returns why SR-IOV is not on at a port; empty: it is.
func (d *Device) off(p *Port) string {
	switch {
	case !d.Enabled:
		return "SRIOV_EN is 0: set it with mlxconfig, and restart the adapter"
	case d.Generation == catalogue.MLX4 && !d.Permit:
		return "PermitSriov is 0"
	case d.Generation == catalogue.MLX4 && d.anyInfiniBand():
		// "SR-IOV cannot be enabled if one of the ports is InfiniBand" (WinOF 5.50, 4.5.3.4.2).
		return "a port of the device is InfiniBand"
	case !p.Offered:
		return "*SRIOV is 0"
	case p.Allowed == 0:
		return "*NumVFs is 0"
	}
	return ""
}

func (d *Device) anyInfiniBand() bool {
	for i := range d.Ports {
		if d.Ports[i].InfiniBand {
			return true
		}
	}
	return false
}

// share returns how many virtual functions the device's configuration has for a port. In manual mode ports that ask for more
// than there are get their part of them: MaxVFPortX / (MaxVFPort1 + MaxVFPort2) * NUM_OF_VFS (WinOF 5.50, 4.6.9.1), without what
// is left of a division.
func (d *Device) share(i int) uint32 {
	if d.Generation != catalogue.MLX4 {
		return min(d.Total, MostPerPort)
	}
	total := min(d.Total, MostPerDevice)
	if d.Mode != Manual {
		if int(d.Mode) == i {
			return total
		}
		return 0
	}
	var sum uint32
	for n := range d.Ports {
		sum += d.MaxVFPort[n]
	}
	if sum <= total {
		return d.MaxVFPort[i]
	}
	return uint32(uint64(d.MaxVFPort[i]) * uint64(total) / uint64(sum))
}
