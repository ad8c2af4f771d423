package driver

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
)

// ResetFunction resets a virtual function: its connections and objects go, as when a device is disabled and enabled (WinOF 5.50, 4.11.2),
// and its programs may open it again. Others at the port, and the adapter, go on.
func (d *Driver) ResetFunction(name string) error {
	if _, _, live := d.functions.place(name); live { // first, so that nothing passes in between
		if err := d.Switches.Restarted(name); err != nil {
			return err
		}
	}
	return d.resetNamed(name)
}

func (d *Driver) resetNamed(name string) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	f, err := d.functionNamed(name)
	if err != nil {
		return err
	}
	return d.resetFunction(f)
}

// resetFunction resets a virtual function. Whoever recovers the adapter's port holds changes too, so that the two follow each other: the
// reset waits for nothing of the function's, neither for its commands nor for turns of the port (WinOF 5.50, Bug Fixes History,
// 1333906). The caller holds changes.
func (d *Driver) resetFunction(f *virtualFunction) error {
	r := d.running[f.cfg.Owner]
	if !f.live {
		return fmt.Errorf("%w: the virtual function %q is disabled with its adapter: there is nothing to reset", api.ErrUnsupported, f.cfg.Name)
	}
	d.commands.ReleaseTenant(f.cfg.Owner, f.cfg.Name)
	d.stopFunctionVLANs(f)
	err := d.host.SetAdapterState(f.index, false)
	if err == nil {
		err = d.host.SetAdapterState(f.index, true)
	}
	if err == nil {
		d.startFunctionVLANs(f)
	}
	if err != nil { // nobody knows what it is: it is made anew
		d.stopFunction(f)
		err = errors.Join(err, d.startFunction(f))
	}
	if !f.live {
		return fmt.Errorf("the virtual function %q does not start again: %w", f.cfg.Name, err)
	}
	d.besides.Info("a virtual function was reset", "adapter", r.Name, "function", f.cfg.Name)
	d.events.Raise(r.Generation, events.VFReset{Adapter: r.Name, VF: f.number, Function: f.cfg.Name})
	return nil
}

// hangFunction makes the commands of a virtual function's programs wait until it is reset or its adapter is restarted: the only fault that
// a virtual function has of its own.
func (d *Driver) hangFunction(q api.FaultRequest) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	f, err := d.functionNamed(q.Adapter)
	if err != nil {
		return err
	}
	if q.Fault != faultCommand {
		return api.Wrong("fault", strconv.Quote(q.Fault), "command: others are the adapter's, at whose port the virtual function is")
	}
	d.log.Warn("a fault is made on request", "function", f.cfg.Name, "fault", q.Fault)
	d.commands.HangTenant(f.cfg.Owner, f.cfg.Name)
	return nil
}
