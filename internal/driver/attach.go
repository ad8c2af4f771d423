package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// serveAttach lets programs attach if the system supports it.
func (d *Driver) serveAttach() error {
	who := d.cfg.ProgramsAudience()
	set := server.Config{
		Driver: "softvpi " + d.version, Log: d.log, Audience: who, Ended: d.programEnded, Refused: d.programRefused,
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
	go func() {
		if err := s.Serve(context.Background(), l); err != nil {
			d.log.Error("attach socket", "error", err)
		}
	}()
	return d.serveContainers()
}

// serveContainers opens the sockets for containers, each in a directory of its own, which is mounted there. In a container
// programs may have any user, so that the directory and the socket are for everyone: outside, the directory above them
// keeps others away.
func (d *Driver) serveContainers() error {
	c := d.cfg.Containers
	if c == nil {
		return nil
	}
	for i := range c.Count {
		path := paths.Container(d.cfg.Socket, i)
		l, err := listen(path, peer.Everyone.Mode())
		if err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(path)), 0o700), os.Chmod(filepath.Dir(path), 0o711)); err != nil {
			l.Close()
			return fmt.Errorf("directory of a container's socket: %w", err)
		}
		q := budget.NewQuota(fmt.Sprintf("container %d", i), uint64(c.Memory), uint64(c.Descriptors))
		d.containers = append(d.containers, q)
		go func() {
			if err := d.attach.ServeContainer(context.Background(), l, server.Container{Audience: peer.Everyone, Quota: q}); err != nil {
				d.log.Error("attach socket", "path", path, "error", err)
			}
		}()
	}
	return nil
}

// heldBy returns what the programs of containers make the driver hold.
func (d *Driver) heldBy() (list []api.ContainerStatus) {
	l := d.attach.Ledger()
	for i, q := range d.containers {
		c := api.ContainerStatus{Number: i, Socket: paths.Container(d.cfg.Socket, i)}
		memory, most := l.UsageOf(q, budget.Memory)
		c.Memory, c.MemoryLimit, c.Refused = memory.Used, most, memory.Refused
		descriptors, most := l.UsageOf(q, budget.Descriptors)
		c.Descriptors, c.DescriptorsLimit = descriptors.Used, most
		c.Refused += descriptors.Refused
		list = append(list, c)
	}
	return list
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
func (d *Driver) driverValues() []counters.DriverValue {
	return append(d.heldValues(), counters.DriverValue{Name: "softvpi_driver_request_panics_total",
		Help: "Requests to the management interface that ended in a panic.", Grows: true, Value: float64(d.panics.count())})
}

// identities returns what the adapters are.
func (d *Driver) identities() (list []counters.Identity) {
	d.settings.RLock()
	defer d.settings.RUnlock()
	for _, r := range d.running {
		list = append(list, counters.Identity{Adapter: r.Name, Generation: api.GenerationName(r.Generation), Driver: d.version,
			Firmware: r.firmware.Version.String(), Board: r.firmware.PSID})
	}
	return list
}

func (d *Driver) heldValues() (list []counters.DriverValue) {
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
			counters.DriverValue{Name: "softvpi_driver_held_" + r.unit, Help: "The " + r.what + ".", Value: float64(r.Used)},
			counters.DriverValue{Name: "softvpi_driver_held_" + r.unit + "_limit", Help: "Limit of the " + r.what + ", of all programs.",
				Value: float64(r.Total)},
			counters.DriverValue{Name: "softvpi_driver_refused_" + r.unit + "_requests_total",
				Help: "Requests beyond a limit of the " + r.what + ".", Grows: true, Value: float64(r.Refused)})
	}
	return list
}
