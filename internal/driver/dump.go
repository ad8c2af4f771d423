package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/driver/dump/register"
	"github.com/softvpi/softvpi/internal/events"
)

const (
	dumpObjects   = 10000                 // maximum number of each kind listed in a dump
	dumpEvents    = 200                   // events of the log included in a trace
	registerDumps = 3                     // consecutive ones in a set (WinOF 5.50, 6.9)
	dumpGap       = 10 * time.Millisecond // between them
	dumpMode      = "SingleFunc"          // the mode of the driver
	registerFile  = "crspace"             // the type of the files of registers
)

// errDumpsOff reports that MstDumpMode forbids state dumps.
var errDumpsOff = errors.New("state dumps are off: MstDumpMode is 0")

// Dump writes the state of an adapter's device to files.
func (d *Driver) Dump(adapter string, q api.DumpRequest) (api.Dump, error) {
	index, err := d.find(adapter)
	switch {
	case err != nil:
		return api.Dump{}, err
	case q.Kind == api.DumpMeNow:
		return d.dumpMeNow(index, q)
	case q.Kind != api.StateDump:
		return api.Dump{}, api.Wrong("kind", fmt.Sprintf("%q", q.Kind), "state, dump-me-now")
	case q.NoRegisters:
		return api.Dump{}, api.Wrong("no_registers", "true", "false: a state dump is of the registers")
	case q.QP != nil:
		return api.Dump{}, api.Wrong("qp", fmt.Sprint(*q.QP), "none: a queue pair goes with dump-me-now")
	}
	return d.dumpOnRequest(index)
}

// dumpMeNow writes a folder at a user's request.
func (d *Driver) dumpMeNow(index uint32, q api.DumpRequest) (api.Dump, error) {
	parts := incidentParts{noRegisters: q.NoRegisters}
	if q.QP != nil {
		core, err := d.coreOf(index, *q.QP)
		if err != nil {
			return api.Dump{}, err
		}
		parts.more = core
	}
	return d.incident(index, dump.User, "", parts)
}

// incidentParts are what a folder has more or less than others.
type incidentParts struct {
	noRegisters bool
	more        []dump.File
}

// dumpOnRequest writes a set of files at a user's request.
func (d *Driver) dumpOnRequest(index uint32) (api.Dump, error) {
	r, e, name := d.running[index], dump.OnRequest, "oid"
	if r.Generation == catalogue.MLX4 {
		e, name = dump.OnControl, "ioctl"
	}
	if !d.dumps.wants(d, r, e) {
		return api.Dump{}, errDumpsOff
	}
	out, err := d.dumpSet(index, dump.Set{Tag: e.Tag, Event: name})
	if err == nil && r.Generation == catalogue.MLX5 { // WinOF has no such event
		d.events.Raise(r.Generation, events.DumpOnRequest{Adapter: r.Name, File: out.Files[0]})
	}
	return out, err
}

// dumpSet writes a set of files.
func (d *Driver) dumpSet(index uint32, s dump.Set) (api.Dump, error) {
	r, first := d.running[index], d.running[d.cfg.Slot(int(index)).First]
	s.Mode, s.Location, s.Keep = dumpMode, api.LocationOf(first.Number).String(), int(d.now(r, "DumpEventsNum"))
	files, err := d.dumpFiles(index, registerDumps)
	if err != nil {
		return api.Dump{}, err
	}
	out := api.Dump{Kind: api.StateDump, Directory: d.temp()}
	d.dumps.Lock()
	defer d.dumps.Unlock()
	if out.Number, out.Files, err = s.Write(out.Directory, files); err != nil {
		return api.Dump{}, fmt.Errorf("state dump: %w", err)
	}
	return out, nil
}

// incident writes a folder about an adapter's device (dump me now: WinOF 5.50, 4.7) for a reason, which becomes part of the folder's
// name ("": NA), and raises the event of its success or failure.
func (d *Driver) incident(index uint32, source dump.Source, reason string, parts incidentParts) (api.Dump, error) {
	r, name := d.running[index], d.cfg.Slot(int(index)).Device
	root, folder, names, err := d.writeIncident(index, source, reason, parts)
	if err != nil {
		if r.Generation == catalogue.MLX4 { // WinOF-2 has no such event
			d.events.Raise(r.Generation, events.DumpMeNowFailed{Device: name, Root: root, Failure: err, Status: 1})
		}
		return api.Dump{}, fmt.Errorf("dump me now: %w", err)
	}
	switch {
	case r.Generation == catalogue.MLX4:
		d.events.Raise(r.Generation, events.DumpMeNow{Device: name, Folder: folder, Root: root})
	case source == dump.User:
		d.events.Raise(r.Generation, events.DumpOnRequest{Adapter: r.Name, File: folder})
	default:
		d.events.Raise(r.Generation, events.DumpAfterError{Adapter: r.Name, File: folder})
	}
	return api.Dump{Kind: api.DumpMeNow, Directory: folder, Files: names}, nil
}

func (d *Driver) writeIncident(index uint32, source dump.Source, reason string, parts incidentParts) (root, folder string,
	paths []string, err error) {
	r := d.running[index]
	root = d.text(r, "DumpMeNowDirectory")
	if root, err = dump.Directory(root, d.temp()); err != nil {
		return root, "", nil, err
	}
	files, err := d.dumpFiles(index, 1)
	if err != nil {
		return root, "", nil, err
	}
	at := d.cfg.Slot(int(index))
	if parts.noRegisters {
		files = slices.DeleteFunc(files, func(f dump.File) bool { return f.Type == registerFile })
	}
	files = append(files, dump.File{Type: "commands", Text: dump.Commands(d.recentCommands(at))})
	files = append(append(files, d.functionFile(r, at)...), parts.more...)
	i := dump.Incident{
		Device: at.Device, Type: "GENERAL", Source: source, Reason: reason, Time: time.Now(),
		Total: int(d.now(r, "DumpMeNowTotalCount")), Preserved: int(d.now(r, "DumpMeNowPreservedCountMin")),
	}
	d.dumps.Lock()
	defer d.dumps.Unlock()
	if folder, err = i.Write(root, files); err != nil {
		return root, "", nil, err
	}
	for _, f := range files {
		paths = append(paths, filepath.Join(folder, f.Name()))
	}
	return root, folder, paths, nil
}

// dumpFiles inspects the ports of an adapter's device, and their registers as often as requested.
func (d *Driver) dumpFiles(index uint32, registers int) ([]dump.File, error) {
	at := d.cfg.Slot(int(index))
	var names []string
	ports := d.portsOf(at)
	for _, i := range ports {
		names = append(names, d.running[i].Name)
	}
	var out []dump.File
	var queues, waiting []byte
	for n := range registers {
		if n > 0 {
			time.Sleep(dumpGap)
		}
		var registers []register.Port
		queues, waiting = nil, nil
		for _, i := range ports {
			s, err := d.host.Inspect(i, dumpObjects)
			if i != index && errors.Is(err, &command.Error{Code: command.NotFound}) {
				continue // the driver starts: the other port comes later
			}
			if err != nil {
				return nil, err
			}
			now := time.Now()
			p := register.Port{Time: now, Generation: generationOf(d.running[i]), Inspection: &s, Counters: dump.Counters(&s)}
			registers = append(registers, p)
			queues, waiting = append(queues, dump.Queues(now, &s)...), append(waiting, dump.Events(now, &s)...)
		}
		out = append(out, dump.File{Type: registerFile, Index: n, Text: register.Dump(registers)})
	}
	page, err := d.events.Query(events.Query{Adapters: names, Limit: dumpEvents})
	if err != nil {
		return nil, err
	}
	return append(out,
		dump.File{Type: "eq_dump", Text: queues}, dump.File{Type: "eq_print", Text: waiting},
		dump.File{Type: "fwtrace", Text: dump.Trace(page.Events, d.recentCommands(at))}), nil
}

// generationOf returns the name of an adapter's generation.
func generationOf(r *running) string {
	if r.Generation == catalogue.MLX4 {
		return "mlx4"
	}
	return "mlx5"
}

// portsOf returns the adapters that are the ports of a device, in order.
func (d *Driver) portsOf(at config.Slot) (ports []uint32) {
	for i := range d.cfg.Adapters {
		if d.cfg.Slot(i).First == at.First {
			ports = append(ports, uint32(i))
		}
	}
	return ports
}

// recentCommands returns the latest commands that the ports of a device were given, the oldest first.
func (d *Driver) recentCommands(at config.Slot) (all []commandlog.Record) {
	for _, i := range d.portsOf(at) {
		all = append(all, d.commands.Recent(i)...)
	}
	slices.SortStableFunc(all, func(a, b commandlog.Record) int { return a.Began.Compare(b.Began) })
	return all
}

// temp returns the directory that \SystemRoot\temp stands for.
func (d *Driver) temp() string { return filepath.Join(d.cfg.State, "temp") }

// now returns the current value of a numeric setting.
func (d *Driver) now(r *running, name string) uint64 {
	d.settings.RLock()
	defer d.settings.RUnlock()
	return r.value(name)
}

// text returns the current value of a text setting.
func (d *Driver) text(r *running, name string) string {
	d.settings.RLock()
	defer d.settings.RUnlock()
	return r.word(name)
}
