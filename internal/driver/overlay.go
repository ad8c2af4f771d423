package driver

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/subnets"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
)

var _ apiserver.OverlaySource = (*Driver)(nil)

// openSubnets reads what is kept of virtual subnets.
func (d *Driver) openSubnets() {
	d.Subnets = subnets.New(subnets.Config{Registry: d.registry, Place: d.providerPlace, Follow: d.followSubnets, Log: d.log})
}

// providerPlace returns the name of an adapter that can have provider addresses, or why it has none.
func (d *Driver) providerPlace(adapter string) (string, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	i, err := d.find(adapter)
	if err != nil {
		return "", err
	}
	if d.infiniBand(int(i)) {
		return "", fmt.Errorf("%w: provider addresses of an InfiniBand port", api.ErrUnsupported)
	}
	if why := d.noFunctions(int(i)); why != "" {
		return "", fmt.Errorf("%w: %s", api.ErrUnsupported, why)
	}
	return d.running[i].Name, nil
}

// followSubnets tells the ports of all adapters what is said of virtual subnets.
func (d *Driver) followSubnets() (err error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	for i := range d.running {
		err = errors.Join(err, d.followSubnet(uint32(i)))
	}
	return err
}

// followSubnet tells the port of adapter i. The caller holds changes.
func (d *Driver) followSubnet(i uint32) error {
	if d.infiniBand(int(i)) {
		return nil
	}
	return d.host.SetOverlay(i, d.Subnets.Tables(d.running[i].Name))
}

// startSubnet tells the port of an adapter that starts. The caller holds changes.
func (d *Driver) startSubnet(i uint32) {
	if err := d.followSubnet(i); err != nil {
		d.log.Warn("the virtual subnets of an adapter are not as is said", "adapter", d.running[i].Name, "cause", err)
	}
}

// Overlay implements apiserver.OverlaySource.
func (d *Driver) Overlay() api.Overlay {
	o := api.Overlay{Entries: d.Subnets.Entries(), Switches: []api.OverlayStatus{}}
	for i := range d.running {
		s := d.host.Overlay(uint32(i))
		if !s.On {
			continue
		}
		mac := net.HardwareAddr(s.MAC[:]).String()
		o.Switches = append(o.Switches, api.OverlayStatus{Adapter: d.running[i].Name, MAC: mac, Functions: s.Members, Records: s.Records,
			Counters: overlayWords(&s)})
	}
	return o
}

// overlayWords returns what an overlay has counted.
func overlayWords(s *device.OverlayStatus) map[string]uint64 {
	c := map[string]uint64{"sent": s.Counters.Sent, "sent_bytes": s.Counters.SentBytes, "arrived": s.Counters.Arrived,
		"arrived_bytes": s.Counters.ArrivedBytes, "local": s.Counters.Local, "routed": s.Counters.Routed, "answered": s.Counters.Answered}
	for why, n := range s.Counters.DroppedBy() {
		c["dropped_"+why] = n
	}
	return c
}

// countedOverlay returns the overlay of an adapter's port for its counter set; nil: there is none.
func (d *Driver) countedOverlay(i uint32) map[string]uint64 {
	s := d.host.Overlay(i)
	if !s.On {
		return nil
	}
	c := overlayWords(&s)
	for name, n := range map[string]int{"functions": s.Members, "records": s.Records, "routes": s.Routes, "addresses": s.Addresses} {
		c[name] = uint64(n)
	}
	return c
}

// subnetStands returns why a virtual function cannot be in its virtual subnet.
func (f *decision) subnetStands() error {
	v := &f.cfg.Virtual
	in := func(allowed string) error { return api.Wrong("vsid", strconv.Quote(fmt.Sprint(v.VSID)), "0 "+allowed) }
	switch {
	case v.VSID == 0:
	case v.Trust:
		return in("with trust=on: raw packets know no virtual subnet")
	case f.cfg.VLAN != 0 || v.VLANs != (bridge.VLANs{}):
		return in("in a VLAN: a virtual subnet has none; its provider address may have one")
	}
	return nil
}
