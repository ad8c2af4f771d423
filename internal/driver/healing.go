package driver

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/healing"
)

// healer watches the adapters, and restarts what is stuck (WinOF 5.50, 4.10.1): a health checker for each, by one goroutine.
type healer struct {
	d      *Driver
	news   chan finding  // errors that parts have told themselves
	rouse  chan struct{} // settings have changed
	end    chan struct{}
	done   chan struct{}
	active bool // it runs

	hung map[uint32]string       // virtual functions of the adapter that is looked at, by the numbers of commands that they wait for
	rows map[string]*healing.Row // resets of virtual functions

	mu       sync.Mutex
	checkers []*healing.Checker
	stopped  []bool // adapters that are off because restarts have not helped, or have failed
}

// finding is an error that a part has told itself.
type finding struct {
	adapter uint32
	sensor  healing.Sensor
	part    uint32
}

func newHealer(d *Driver, adapters int) *healer {
	return &healer{d: d, news: make(chan finding, mostEvents), rouse: make(chan struct{}, 1), end: make(chan struct{}),
		done: make(chan struct{}), checkers: make([]*healing.Checker, adapters), stopped: make([]bool, adapters),
		hung: map[uint32]string{}, rows: map[string]*healing.Row{}}
}

// now returns the time of the checkers.
func (h *healer) now() clock.Time { return clock.Time(time.Since(h.d.started)) }

// start begins to watch the adapters, which are there.
func (h *healer) start() {
	now := h.now()
	for i := range h.checkers {
		h.checkers[i] = healing.New(now, h.d.healingSettings(i))
	}
	h.active = true
	go h.run()
}

// close ends the watch.
func (h *healer) close() {
	if h == nil || !h.active {
		return
	}
	for i := range h.checkers { // nobody waits for a restart any more
		h.d.commands.Release(uint32(i))
	}
	close(h.end)
	<-h.done
}

// healingSettings returns how adapter i is watched, by its keys.
func (d *Driver) healingSettings(i int) healing.Settings {
	r := d.running[i]
	d.settings.RLock()
	defer d.settings.RUnlock()
	return healing.Settings{
		Every:  time.Duration(r.value("SHCheckForHangTimeInSeconds")) * time.Second,
		Looks:  int(r.value("CheckForHangCQMaxNoProgress")),
		Active: healing.Sensor(r.value("SHMPResetActiveSensorsMask")),
		Dump:   healing.Sensor(r.value("SHSensorsDumpMask")),
	}
}

// changed says that keys have changed: their values hold from now on.
func (h *healer) changed() {
	select {
	case h.rouse <- struct{}{}:
	default:
	}
}

// tell takes an error from whoever drives a loop: it does not block. More than mostEvents that wait are lost.
func (h *healer) tell(f finding) {
	select {
	case h.news <- f:
	default:
	}
}

// broke takes a port that has broken down.
func (h *healer) broke(b device.Breakdown) {
	h.tell(finding{adapter: b.Adapters[0], sensor: healing.Internal})
}

func (h *healer) run() {
	defer close(h.done)
	for {
		timer := time.NewTimer(h.deadline().Sub(h.now()))
		select {
		case <-h.end:
			timer.Stop()
			return
		case f := <-h.news:
			h.act(f.adapter, h.report(f))
		case <-h.rouse:
			h.follow()
		case <-timer.C:
		}
		timer.Stop()
		h.look()
	}
}

// deadline returns when the next look at an adapter is due.
func (h *healer) deadline() clock.Time {
	due := clock.Never
	for _, c := range h.checkers {
		due = clock.Min(due, c.Deadline())
	}
	return due
}

func (h *healer) follow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for i, c := range h.checkers {
		c.Set(now, h.d.healingSettings(i))
	}
}

func (h *healer) report(f finding) healing.Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.checkers[f.adapter].Report(h.now(), f.sensor, f.part)
}

// look looks at the adapters whose look is due.
func (h *healer) look() {
	for i, c := range h.checkers {
		if now := h.now(); now >= c.Deadline() {
			for _, v := range h.lookAt(now, uint32(i)) {
				if !h.act(uint32(i), v) {
					break // what was read was of the adapter as it was before
				}
			}
		}
	}
}

func (h *healer) lookAt(now clock.Time, i uint32) []healing.Verdict {
	readings, err := h.d.host.Readings(i, nil)
	if err != nil {
		return nil
	}
	clear(h.hung)
	for _, p := range h.d.commands.Pending(i) {
		readings = append(readings, healing.Reading{Sensor: healing.Command, Part: p.Number, Waits: true})
		if p.Function != "" {
			h.hung[p.Number] = p.Function
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]healing.Verdict(nil), h.checkers[i].Look(now, readings)...)
}

// act does what follows from an error, and reports whether nothing was restarted or stopped.
func (h *healer) act(i uint32, v healing.Verdict) bool {
	d := h.d
	r := d.running[i]
	d.log.Warn("a sensor found an error", "adapter", r.Name, "sensor", v.Sensor.String(), "part", v.Part, "restart", v.Restart)
	d.tellSensor(int(i), v)
	if v.Dump {
		if _, err := d.incident(i, dump.SelfHealing, v.Sensor.Key(), incidentParts{}); err != nil {
			d.log.Warn("no dump of an error that a sensor found", "adapter", r.Name, "error", err)
		}
	}
	switch {
	case v.Stop, v.Restart && v.Sensor == healing.Internal && d.mayReset(i) != nil:
		h.stop(i, v.Sensor)
	case v.Restart && v.Sensor == healing.Command && h.reset(h.hung[v.Part]):
		return true
	case v.Restart:
		h.restart(i, v.Sensor)
	default:
		return true
	}
	return false
}

// reset resets the virtual function whose command does not return, and nothing else, and reports whether it has. After several resets in a
// row it does not: what hangs again and again is the adapter's.
func (h *healer) reset(function string) bool {
	if function == "" {
		return false
	}
	row := h.rows[function]
	if row == nil {
		for name := range h.rows { // of functions that are gone
			if _, _, live := h.d.functions.place(name); !live {
				delete(h.rows, name)
			}
		}
		row = &healing.Row{}
		h.rows[function] = row
	}
	if !row.Next(h.now()) {
		return false
	}
	if err := h.d.ResetFunction(function); err != nil {
		h.d.log.Warn("a virtual function whose commands do not return was not reset", "function", function, "error", err)
		return false
	}
	return true
}

// restart restarts what the sensor watches, and says so.
func (h *healer) restart(i uint32, s healing.Sensor) {
	d := h.d
	r := d.running[i]
	d.events.Raise(r.Generation, events.ResetByDriver{Adapter: r.Name})
	affected, err := d.recoverFrom(i, s)
	if err != nil {
		d.events.Raise(r.Generation, events.SelfHealingFailed{Device: d.cfg.Slot(int(i)).Device, Sensors: s.Mask(), Error: err})
		d.events.Raise(r.Generation, events.ResetFailed{Adapter: r.Name})
		h.stop(i, s)
		return
	}
	h.mu.Lock()
	now := h.now()
	for _, o := range affected {
		if h.stopped[o] = false; o == i {
			h.checkers[o].Restarted(now)
		} else {
			h.checkers[o].Forget()
		}
	}
	restarts := h.checkers[i].Restarts()
	h.mu.Unlock()
	d.events.Raise(r.Generation, events.SelfHealingRestart{Interface: r.Name, Sensors: s.Mask(), Restarts: restarts})
	d.events.Raise(r.Generation, events.ResetFinished{Adapter: r.Name})
}

// stop leaves an adapter off.
func (h *healer) stop(i uint32, s healing.Sensor) {
	d := h.d
	d.changes.Lock()
	defer d.changes.Unlock()
	for _, o := range d.host.AtPort(i) {
		if d.enabled(o) {
			if err := d.disable(d.running[o], o); err != nil {
				d.log.Error("a stuck adapter was not stopped", "adapter", d.running[o].Name, "error", err)
			}
		}
	}
	h.mu.Lock()
	h.stopped[i] = true
	h.mu.Unlock()
	d.events.Raise(d.running[i].Generation, events.SelfHealingStop{Interface: d.running[i].Name, Sensors: s.Mask()})
}

// enabledByHand says that somebody has made an adapter work again.
func (h *healer) enabledByHand(i uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped[i] = false; h.checkers[i] != nil {
		h.checkers[i].Forget()
	}
}

// counters returns those of an adapter.
func (h *healer) counters(i uint32) (n healing.Counters) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.checkers[i]; c != nil {
		n = c.Counters()
	}
	return n
}

// recoverFrom restarts what a sensor of an adapter watches, with its present settings, and nothing else. It returns the adapters that
// were restarted.
func (d *Driver) recoverFrom(i uint32, s healing.Sensor) ([]uint32, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	list := []uint32{i}
	switch s {
	case healing.ReceiveSoftware: // of the Ethernet function; RDMA beside it goes on
		return list, d.startEthernet(int(i))
	case healing.SendHardware, healing.ReceiveCompletion, healing.SendCompletion, healing.Health, healing.Internal:
		list = d.host.AtPort(i)
	}
	var on []uint32
	for _, o := range list {
		if !d.enabled(o) {
			continue
		}
		on = append(on, o)
		if err := d.disable(d.running[o], o); err != nil {
			return nil, err
		}
	}
	var failed error
	for _, o := range on {
		failed = errors.Join(failed, d.enableWithKeys(d.running[o], o))
	}
	return on, failed
}

// tellSensor writes the event of an error that a sensor has found: WinOF's of its sensors and WinOF-2's of its queues, where there are
// such, and else one of ours. It returns when the dump is written that WinOF-2 makes of some errors.
func (d *Driver) tellSensor(i int, v healing.Verdict) {
	r, at := d.running[i], d.cfg.Slot(i)
	queue, function := int(v.Part), at.Port-1
	var written <-chan struct{}
	switch v.Sensor {
	case healing.SendHardware, healing.SendSoftware:
		if v.Sensor == healing.SendHardware {
			d.events.Raise(r.Generation, events.SendHardwareStuck{Device: at.Device})
		} else {
			d.events.Raise(r.Generation, events.SendSoftwareStuck{Device: at.Device})
		}
		d.events.Raise(r.Generation, events.SendTimeout{Adapter: r.Name, Queue: queue, Function: function})
		written = d.dumps.on(d, uint32(i), dump.SendCQStuck, fmt.Sprintf("txcq-stuck-%d", queue))
	case healing.ReceiveSoftware:
		d.events.Raise(r.Generation, events.ReceiveSoftwareStuck{Device: at.Device})
		d.events.Raise(r.Generation, events.ReceiveTimeout{Adapter: r.Name, Queue: queue, Function: function})
		written = d.dumps.on(d, uint32(i), dump.RecvCQStuck, fmt.Sprintf("rxcq-stuck-%d", queue))
	case healing.ReceiveCompletion:
		d.events.Raise(r.Generation, events.ReceiveCompletionError{Device: at.Device})
	case healing.SendCompletion:
		d.events.Raise(r.Generation, events.SendCompletionError{Device: at.Device})
	case healing.EventQueue:
		d.events.Raise(r.Generation, events.EventQueueStuck{Adapter: r.Name, EQ: queue})
		written = d.dumps.on(d, uint32(i), dump.EQStuck, fmt.Sprintf("eq-stuck-%d", queue))
	case healing.Command:
		d.events.Raise(r.Generation, events.SensorError{Adapter: r.Name, Sensor: v.Sensor.String(), Mask: v.Sensor.Mask()})
		written = d.dumps.on(d, uint32(i), dump.CommandError, "cmd-timeout")
	default:
		d.events.Raise(r.Generation, events.SensorError{Adapter: r.Name, Sensor: v.Sensor.String(), Mask: v.Sensor.Mask()})
	}
	if written != nil {
		<-written
	}
}
