package driver

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

var _ apiserver.Diagnostics = (*Driver)(nil)

// loggedHost is the Host to which programs attach; it logs their commands.
type loggedHost struct {
	server.Host
	host *device.Host
	log  *commandlog.Log
}

// NewClient implements server.Host.
func (h loggedHost) NewClient(cfg device.ClientConfig) (server.Session, error) {
	c, err := h.host.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	return h.log.Client(c, cfg.Name, cfg.PID), nil
}

// attachHost returns the Host to which programs attach.
func (d *Driver) attachHost() server.Host {
	return loggedHost{server.DeviceHost(d.host), d.host, d.commands}
}

// ResetAdapter restarts an adapter, with the events of a reset.
func (d *Driver) ResetAdapter(name string) error {
	index, err := d.find(name)
	if err != nil {
		return err
	}
	if err := d.mayReset(index); err != nil {
		return err
	}
	g := d.running[index].Generation
	if g == catalogue.MLX5 { // WinOF has no such event
		d.events.Raise(g, events.ResetByDriver{Adapter: name})
	}
	if err := d.RestartAdapter(name); err != nil {
		d.events.Raise(g, events.ResetFailed{Adapter: name})
		return err
	}
	d.events.Raise(g, events.ResetFinished{Adapter: name})
	return nil
}

// mayReset returns an error if the device of an adapter must not be reset (WinOF 5.50, 10: the reset flow depends on AllowResetOnError).
func (d *Driver) mayReset(index uint32) error {
	r := d.running[index]
	if r.Generation == catalogue.MLX4 && d.now(r, "AllowResetOnError") == 0 {
		return fmt.Errorf("%w: AllowResetOnError is 0: the device must not be reset", api.ErrUnsupported)
	}
	return nil
}

// Resources returns the objects of an adapter and its partition keys.
func (d *Driver) Resources(adapter string) (api.Resources, error) {
	index, err := d.find(adapter)
	if err != nil {
		return api.Resources{}, err
	}
	s, err := d.host.Inspect(index, 0)
	if err != nil {
		return api.Resources{}, err
	}
	o, l := s.Counters.Objects, s.Limits
	return api.Resources{PKeys: s.PKeys, Objects: []api.Resource{
		{Name: "QP", Used: o.QP, Max: uint64(l.QP)}, {Name: "CQ", Used: o.CQ, Max: uint64(l.CQ)},
		{Name: "SRQ", Used: o.SRQ, Max: uint64(l.SRQ)},
		{Name: "MPT", Used: o.MR + o.MW, Max: uint64(l.MR) + uint64(l.MW)}, {Name: "PD", Used: o.PD, Max: uint64(l.PD)},
		{Name: "AH", Used: o.AH, Max: uint64(l.AH)},
	}}, nil
}

// Commands returns statistics of the commands sent to an adapter.
func (d *Driver) Commands(adapter string) ([]api.CallStats, error) {
	index, err := d.find(adapter)
	if err != nil {
		return nil, err
	}
	out := []api.CallStats{}
	for _, s := range d.commands.Stats(index) {
		out = append(out, api.CallStats{Name: s.Command, Count: s.Count, Failed: s.Failed, Total: s.Total, Longest: s.Longest})
	}
	return out, nil
}
