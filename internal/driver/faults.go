package driver

import (
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/healing"
)

var _ api.FaultSource = (*Driver)(nil)

// faults are those that happen inside an adapter, by their names.
var faults = map[string][]device.Fault{
	"wire": {device.FaultWire}, "completions": {device.FaultCompletions}, "host": {device.FaultHost}, "receive": {device.FaultReceive},
	"send": {device.FaultSend}, "descriptor": {device.FaultReceive, device.FaultSend}, "events": {device.FaultEvents},
	"loop": {device.FaultLoop}, "panic": {device.FaultPanic}, "turn": {device.FaultTurn},
}

// faultCommand is the fault of commands that do not return.
const faultCommand = "command"

// InjectFault implements api.FaultSource.
func (d *Driver) InjectFault(q api.FaultRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	if !d.cfg.FaultInjection {
		return fmt.Errorf("%w: faults are not allowed here; the configuration allows them with \"fault_injection\": true", api.ErrUnsupported)
	}
	list, ok := faults[q.Fault]
	if !ok && q.Fault != faultCommand {
		return api.Wrong("fault", strconv.Quote(q.Fault), "wire, completions, host, receive, send, descriptor, events, command, loop, panic, turn")
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	d.log.Warn("a fault is made on request", "adapter", q.Adapter, "fault", q.Fault)
	if !ok {
		d.commands.Hang(index)
		return nil
	}
	for _, f := range list {
		if err := d.host.Inject(index, f); err != nil {
			return fmt.Errorf("%w: %s", api.ErrUnsupported, detail(err))
		}
	}
	return nil
}

// healingStatus returns what self-healing has seen and done at adapter i.
func (d *Driver) healingStatus(i int) *api.HealingStatus {
	h := d.healing
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.checkers[i]
	if c == nil {
		return nil
	}
	set := c.Settings()
	s := &api.HealingStatus{Every: int(set.Every.Seconds()), Looks: set.Looks, Restarts: c.Restarts(), Stopped: h.stopped[i]}
	for _, x := range healing.All {
		s.Sensors = append(s.Sensors, api.SensorStatus{Name: x.String(), Mask: x.Mask(), Active: set.Active&x != 0, Dump: set.Dump&x != 0,
			Error: c.Found()&x != 0, Count: c.Count(x), Within: int(set.DetectionTime(x).Seconds())})
	}
	return s
}
