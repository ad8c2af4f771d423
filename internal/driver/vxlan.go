package driver

import "fmt"

// vxlanOff returns why the Ethernet function of adapter i does without the offload of VXLAN that its keys ask for; empty: it does not. Of
// the two ports of a device the first has its own number: "on a dual-port adapter, VXLAN offload service cannot be provided simultaneously
// for both Ethernet ports if they are not using the same UDP port" (WinOF 5.50, 4.1.15; WinOF-2 24.4, Ethernet Network, VXLAN). Frames pass
// all the same, and the host does what the function does not. The caller holds changes.
func (d *Driver) vxlanOff(i int) string {
	number, on := d.vxlanPort(i)
	if !on {
		return ""
	}
	for _, p := range d.portsOf(d.cfg.Slot(i)) {
		if int(p) >= i {
			break
		}
		if other, on := d.vxlanPort(int(p)); on && other != number {
			return fmt.Sprintf("%q, the other port of the device, has UDP port %d", d.cfg.Adapters[p].Name, other)
		}
	}
	return ""
}

// vxlanPort returns by which UDP port adapter i is to know VXLAN, and whether it is to: whether an Ethernet function is there, whose key
// says so.
func (d *Driver) vxlanPort(i int) (number uint64, on bool) {
	r := d.running[i]
	return r.value("*VxlanUDPPortNumber"), d.cfg.Adapters[i].Host != "" && r.value("*EncapsulatedPacketTaskOffloadVxlan") != 0
}

// followVXLAN has the ports behind adapter i's of its device handle VXLAN, or not, when its keys have changed. The caller holds changes.
func (d *Driver) followVXLAN(i int) {
	for _, p := range d.portsOf(d.cfg.Slot(i)) {
		e := d.host.Ethernet(p)
		if int(p) > i && e != nil && e.Config.TunnelVXLAN != d.ownEthernet(int(p)).TunnelVXLAN {
			d.changeEthernet(int(p))
		}
	}
}
