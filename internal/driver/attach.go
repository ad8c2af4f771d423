package driver

import (
	"context"
	"errors"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// serveAttach lets programs attach if the system supports it.
func (d *Driver) serveAttach() error {
	who := d.cfg.ProgramsAudience()
	set := server.Config{
		Driver: "softvpi " + d.version, Log: d.log, Beside: d.besides, Audience: who, Ended: d.programEnded, Refused: d.programRefused,
		Memory: d.cfg.ProgramMemory(server.DefaultMemory()),
	}
	if l := d.cfg.Limits; l != nil {
		set.ProgramDescriptors = uint64(l.DescriptorsPerProgram)
	}
	s, err := server.New(d.attachHost(), set)
	if errors.Is(err, proto.ErrPlatform) {
		d.noAttach = "attaching is built for Linux only; on this system programs embed their adapters"
		return nil
	}
	if err != nil {
		return err
	}
	l, err := d.listen(d.cfg.Socket, who.Mode())
	if err != nil {
		return err
	}
	d.attach = s
	of := server.Container{Of: d.inSpace(who)}
	go func() {
		if err := s.ServeContainer(context.Background(), l, of); err != nil {
			d.log.Error("attach socket", "error", err)
		}
	}()
	return d.serveContainers()
}

// held returns what programs make the driver hold, nil if none can attach.
func (d *Driver) held() *api.HeldStatus {
	if d.attach == nil {
		return nil
	}
	l := d.attach.Ledger()
	one := func(r budget.Resource) api.HeldResource {
		u, limits := l.Usage(r), l.Limits(r)
		return api.HeldResource{Used: u.Used, Total: limits.Total, PerUser: limits.User, PerProgram: limits.Program, Refused: u.Refused}
	}
	return &api.HeldStatus{Memory: one(budget.Memory), Descriptors: one(budget.Descriptors), Containers: d.heldBy()}
}

// driverValues returns values of the driver beside the counters of the adapters: what is held for programs, and its own faults.
func (d *Driver) driverValues() []collector.DriverValue {
	return append(d.heldValues(), collector.DriverValue{Name: "softvpi_driver_request_panics_total",
		Help: "Requests to the management interface that ended in a panic.", Grows: true, Value: float64(d.panics.count())})
}

// identities returns what the adapters are.
func (d *Driver) identities() (list []collector.Identity) {
	d.settings.RLock()
	defer d.settings.RUnlock()
	for _, r := range d.running {
		list = append(list, collector.Identity{Adapter: r.Name, Generation: api.GenerationName(r.Generation), Driver: d.version,
			Firmware: r.firmware.Version.String(), Board: r.firmware.PSID})
	}
	return list
}

func (d *Driver) heldValues() (list []collector.DriverValue) {
	h := d.held()
	if h == nil {
		return nil
	}
	for _, r := range [...]struct {
		unit, what string
		api.HeldResource
	}{{"bytes", "memory that programs make the driver hold", h.Memory}, {"descriptors",
		"descriptors that the driver keeps open for programs", h.Descriptors}} {
		list = append(list,
			collector.DriverValue{Name: "softvpi_driver_held_" + r.unit, Help: "The " + r.what + ".", Value: float64(r.Used)},
			collector.DriverValue{Name: "softvpi_driver_held_" + r.unit + "_limit", Help: "Limit of the " + r.what + ", of all programs.",
				Value: float64(r.Total)},
			collector.DriverValue{Name: "softvpi_driver_refused_" + r.unit + "_requests_total",
				Help: "Requests beyond a limit of the " + r.what + ".", Grows: true, Value: float64(r.Refused)})
	}
	return list
}
