package api

// Device is a device with the adapters that are its ports, of which there is at least one.
type Device struct {
	Name     string // by which tools show it
	Index    int    // among the devices, from 0
	NodeGUID uint64
	Ports    []*AdapterStatus // in the order of their numbers
}

// Devices returns the devices in the order of their first ports.
func (s *Status) Devices() []Device {
	var all []Device
	at := map[string]int{}
	for i := range s.Adapters {
		a := &s.Adapters[i]
		n, known := at[a.Device]
		if !known {
			n = len(all)
			at[a.Device] = n
			all = append(all, Device{Name: a.DeviceName, Index: n, NodeGUID: a.NodeGUID})
		}
		all[n].Ports = append(all[n].Ports, a)
	}
	return all
}

// First returns the adapter of the device's first port, which has the device's keys.
func (d *Device) First() *AdapterStatus { return d.Ports[0] }

// Location returns where the device is.
func (d *Device) Location() Location { return d.First().Location() }

// RDMA reports whether programs can use the adapter's port: it is InfiniBand, or RoCE is on.
func (a *AdapterStatus) RDMA() bool { return a.InfiniBand != nil || a.RoCE != "none" }
