package driver

import "github.com/softvpi/softvpi/internal/function/ethernet"

// functionEthernet is how the Ethernet function of a virtual function works: by the keys of its adapter, with as many receive queues as it
// asks for, of which RSS grants one for each processor that it may use (WinOF-2 24.4, Configuring Virtual Machine Networking:
// IovQueuePairsRequested). A virtual port gets its frames by a queue of the adapter's (VMQ), and has
// more than one of them where *RssOnHostVPorts allows (VMMQ).
func (d *Driver) functionEthernet(f *virtualFunction) ethernet.Config {
	c := d.ethernetConfig(int(f.cfg.Owner))
	if f.queues > 0 {
		c.NumRSSQueues = f.queues
	}
	if !d.Switches.VirtualPort(f.cfg.Name) {
		d.releaseQueue(f)
		return c
	}
	if d.running[f.cfg.Owner].value("*RssOnHostVPorts") == 0 {
		c.NumRSSQueues = 1
	}
	c.Virtual = d.claimQueue(f)
	return c
}
