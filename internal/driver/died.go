package driver

import (
	"bytes"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/driver/lastwords"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// openLastWords begins the record that the next driver finds if this one dies, and returns what the one before has left; nil: it
// stopped.
func (d *Driver) openLastWords() *lastwords.Remains {
	last, remains, err := lastwords.Open(d.cfg.State, d.recover, d.own)
	if err != nil {
		d.log.Warn("the next driver will not find why this one ended, if it dies", "cause", err)
	}
	d.last, d.commands.Last = last, last
	return remains
}

// tellDeath keeps what the driver before has left in a folder of its own, like a dump-me-now, and reports it.
func (d *Driver) tellDeath(left *lastwords.Remains) {
	if left == nil {
		return
	}
	folder, err := d.keepRemains(left)
	d.died = &api.Death{Time: left.Time, Cause: left.Cause(), Folder: folder}
	if err != nil {
		d.log.Warn("what the driver before left is not kept", "cause", err)
		folder = "-"
	}
	d.besides.Error("the driver before died", "cause", d.died.Cause, "folder", folder)
	d.events.Raise(0, events.DriverDied{Cause: d.died.Cause, Folder: folder})
}

func (d *Driver) keepRemains(left *lastwords.Remains) (folder string, err error) {
	page, err := d.events.Query(events.Query{Limit: dumpEvents, Until: left.Time})
	if err != nil {
		return "", err
	}
	files := []dump.File{{Type: "commands", Text: d.lastCommands(left.Commands)}, {Type: "fwtrace", Text: dump.Trace(page.Events, nil)}}
	if len(left.Traceback) > 0 {
		files = append(files, dump.File{Type: "traceback", Text: left.Traceback})
	}
	return d.keepFault(dump.Incident{Source: dump.Death, Reason: left.Reason(), Time: left.Time}, files)
}

// keepFault keeps what is left of a fault of the driver in a folder beside the dumps of its first adapter.
func (d *Driver) keepFault(i dump.Incident, files []dump.File) (folder string, err error) {
	i.Device, i.Type = "driver", "GENERAL"
	place := `\SystemRoot\temp`
	if len(d.running) > 0 {
		r := d.running[0]
		place = d.text(r, "DumpMeNowDirectory")
		i.Total, i.Preserved = int(d.now(r, "DumpMeNowTotalCount")), int(d.now(r, "DumpMeNowPreservedCountMin"))
	}
	root, err := dump.Directory(place, d.temp())
	if err != nil {
		return "", err
	}
	d.dumps.Lock()
	defer d.dumps.Unlock()
	return i.Write(root, files)
}

// lastCommands returns the commands of a driver that died as text. Its adapters had the numbers that they have in its configuration.
func (d *Driver) lastCommands(list []lastwords.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# the last commands of the driver that died, the oldest first\n")
	for _, c := range list {
		adapter, end := "-", "success"
		if c.Adapter >= 0 && c.Adapter < len(d.running) {
			adapter = d.running[c.Adapter].Name
		}
		switch {
		case c.Running:
			end = "was being carried out"
		case c.Failure == lastwords.Waits:
			end = "waits"
		case c.Failure != 0:
			end = command.Code(c.Failure).String()
		}
		fmt.Fprintf(&b, "%s adapter %q %s program %q pid %d took %v: %s\n", c.Began.Format(time.RFC3339Nano), adapter,
			proto.Opcode(c.Opcode), c.Program, c.PID, c.Took, end)
	}
	return b.Bytes()
}
