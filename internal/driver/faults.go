package driver

import (
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/healing"
)

var _ apiserver.FaultSource = (*Driver)(nil)

// faults are those that happen inside an adapter, by their names.
var faults = map[string][]device.Fault{
	"wire": {device.FaultWire}, "completions": {device.FaultCompletions}, "host": {device.FaultHost}, "receive": {device.FaultReceive},
	"send": {device.FaultSend}, "descriptor": {device.FaultReceive, device.FaultSend}, "events": {device.FaultEvents},
	"loop": {device.FaultLoop}, "panic": {device.FaultPanic}, "turn": {device.FaultTurn},
}

// Faults that no adapter has.
const (
	faultCommand = "command" // commands do not return
	faultCrash   = "crash"   // the driver panics where nobody mends it
	faultRequest = "request" // the request for the fault panics
)

// InjectFault implements apiserver.FaultSource.
func (d *Driver) InjectFault(q api.FaultRequest) error {
	index, err := d.find(q.Adapter)
	function := err != nil && d.isFunction(q.Adapter)
	if err != nil && !function {
		return err
	}
	if !d.cfg.FaultInjection {
		return fmt.Errorf("%w: faults are not allowed here; the configuration allows them with \"fault_injection\": true", api.ErrUnsupported)
	}
	list, ok := faults[q.Fault]
	if !ok && q.Fault != faultCommand && q.Fault != faultCrash && q.Fault != faultRequest {
		return api.Wrong("fault", strconv.Quote(q.Fault),
			"wire, completions, host, receive, send, descriptor, events, command, loop, panic, turn, crash, request")
	}
	if q.Fault == faultCrash && !d.own {
		return fmt.Errorf("%w: the driver has no process of its own that may crash", api.ErrUnsupported)
	}
	if function {
		return d.hangFunction(q)
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	d.log.Warn("a fault is made on request", "adapter", q.Adapter, "fault", q.Fault)
	switch q.Fault {
	case faultCrash:
		go panic("a fault that was asked for at the adapter " + strconv.Quote(q.Adapter))
		return nil
	case faultRequest:
		panic("a fault that was asked for at the adapter " + strconv.Quote(q.Adapter))
	case faultCommand:
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
