package driver

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
)

// Bits of *FlowControl (WinOF-2 1.21, 3.4.5.1).
const (
	flowTx = 1 // pauses when it is asked to
	flowRx = 2 // asks
)

// flowControl returns which pauses adapter i obeys and sends by its keys, and whether anybody has chosen that.
func (r *running) flowControl() (f device.FlowControl, chosen bool) {
	if r.Generation == catalogue.MLX5 {
		n, stored := r.number("*FlowControl")
		if n&flowTx != 0 {
			f.Obeys = pause.Whole
		}
		if n&flowRx != 0 {
			f.Asks = pause.Whole
		}
		f.Watch = port.Watch{Watermark: r.milliseconds("DeviceRxStallWatermark"), Timeout: r.milliseconds("DeviceRxStallTimeout")}
		f.Lifetime = port.Lifetime{Classes: uint8(r.value("TCHeadOfQueueLifeTimeLimitEnable")),
			Limit: port.HeadLifetime(int(r.value("TCHeadOfQueueLifeTimeLimit"))), StallCount: int(r.value("TCStallCount"))}
		return f, stored && n != 0
	}
	var set [2]bool
	f.Obeys, set[0] = r.mlx4Scope("TxPause", "PerPriTxPause")
	f.Asks, set[1] = r.mlx4Scope("RxPause", "PerPriRxPause")
	return f, set[0] || set[1]
}

// milliseconds returns the value of a key.
func (r *running) milliseconds(name string) time.Duration {
	return time.Duration(r.value(name)) * time.Millisecond
}

// mlx4Scope returns which pauses two keys of WinOF mean, which exclude each other (WinOF 5.50, 4.6.6.1), and whether one of them was
// set to that.
func (r *running) mlx4Scope(global, single string) (pause.Scope, bool) {
	if n, _ := r.number(single); n != 0 {
		return pause.Only(uint8(n)), true
	}
	n, stored := r.number(global)
	if n == 0 {
		return pause.Scope{}, false
	}
	return pause.Whole, stored
}

// changeFlowControl makes adapter i's port obey and send the pauses of its keys. Where there can be none, and somebody has chosen
// that, it says so.
func (d *Driver) changeFlowControl(i int) error {
	r := d.running[i]
	f, chosen := r.flowControl()
	if err := d.host.SetFlowControl(uint32(i), f); err != nil {
		return err
	}
	if err := d.host.CheckFlowControl(uint32(i)); chosen && err != nil {
		why := detail(err)
		d.besides.Warn("the port has no flow control", "adapter", r.Name, "cause", why)
		d.events.Raise(r.Generation, events.FlowControlRefused{Adapter: r.Name, Cause: why})
	}
	return d.startDropless(i)
}

// flowStatus returns how the flow control of adapter i's port stands; nil on an InfiniBand port.
func (d *Driver) flowStatus(i int, s *device.FlowStatus) *api.FlowControlStatus {
	d.changes.Lock()
	r := d.running[i]
	_, chosen := r.flowControl()
	infiniBand := r.cable() != nil
	d.changes.Unlock()
	if infiniBand {
		return nil
	}
	f := &api.FlowControlStatus{Obeys: scopeText(s.Obeys), Asks: scopeText(s.Asks), Paused: qos.FormatPriorities(s.Paused),
		Pausing: qos.FormatPriorities(s.Told)}
	if s.Refused != nil {
		f.Refused, f.Asked = detail(s.Refused), chosen
	}
	if s.Stalled {
		f.Stalled = "the receive path stands still"
	}
	switch {
	case s.Dropless == port.Forever:
		f.Dropless = "without end"
	case s.Dropless != 0:
		f.Dropless = s.Dropless.String()
	}
	f.Waiting = s.Waiting
	if s.Deaf != nil {
		f.Deaf = s.Deaf.Error()
	}
	return f
}

func scopeText(s pause.Scope) string {
	if s.Mode == pause.PerPriority {
		return fmt.Sprintf("%v %s", s.Mode, qos.FormatPriorities(s.Priorities))
	}
	return s.Mode.String()
}
