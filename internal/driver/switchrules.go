package driver

import (
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
)

// switched is the driver as its virtual switches see it, which may do to their adapters' functions what nobody else may.
type switched struct{ *Driver }

// SetFunction implements vswitch.Functions.
func (s switched) SetFunction(q api.FunctionRequest) error { return s.setFunction(q) }

// RemoveFunction implements vswitch.Functions.
func (s switched) RemoveFunction(name string) error { return s.removeFunction(name) }

// FollowSwitch implements vswitch.Functions.
func (s switched) FollowSwitch(name string, anew bool) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	f, err := s.functionNamed(name)
	if err != nil {
		return err
	}
	return s.decide(f, f.decision, anew)
}

// SetFunction changes a virtual function. What the virtual switch decides at which it is an adapter is changed there.
func (d *Driver) SetFunction(q api.FunctionRequest) error {
	if err := d.Switches.Owned(q.Name, append([]string{}, q.Settings...)); err != nil {
		return err
	}
	return d.setFunction(q)
}

// RemoveFunction removes a virtual function. The network adapters of virtual switches are removed there.
func (d *Driver) RemoveFunction(name string) error {
	if err := d.Switches.Owned(name, nil); err != nil {
		return err
	}
	return d.removeFunction(name)
}

// ruled adds to what is decided about a virtual function what its virtual switch says. The caller holds changes.
func (d *Driver) ruled(f *virtualFunction, v device.Virtual) device.Virtual {
	r := d.Switches.Rules(f.cfg.Name)
	v.Blocked, v.PacketDirect = r.Blocked, r.PacketDirect && d.running[f.cfg.Owner].value(keyPacketDirect) != 0
	return v
}

const keyPacketDirect = "*PacketDirect"

// framesAt returns why a virtual switch over an adapter has no PacketDirect: the adapter's key, as it is since its last start.
func (d *Driver) framesAt(adapter string) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	i, err := d.find(adapter)
	if err != nil {
		return err
	}
	if d.running[i].value(keyPacketDirect) == 0 {
		return api.Wrong("packetdirect", fmt.Sprintf("on over %s, whose key %s is 0", strconv.Quote(adapter), keyPacketDirect),
			"off, until Enable-NetAdapterPacketDirect, or the key, offers queues of frames there")
	}
	return nil
}
