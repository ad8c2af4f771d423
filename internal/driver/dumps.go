package driver

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/events"
)

// dumps writes dumps, one at a time, and those of events beside whoever notices the event.
type dumps struct {
	sync.Mutex // held while writing the files of a dump

	waiting chan waitingDump // nil: no event has asked for a dump yet
	done    chan struct{}    // closed when the last one is written

	asked  sync.Mutex // guards the rest, and sends to waiting
	closed bool
	latest map[dumpCause]time.Time
}

// waitingDump is a set of files that an event asks for.
type waitingDump struct {
	index uint32
	event dump.Event
	name  string
	done  chan struct{} // closed when it is written, or is not going to be
}

// dumpCause is what sets of files are limited by.
type dumpCause struct {
	index uint32
	event string
}

const (
	mostWaitingDumps = 16
	// causeGap is the time from one set of an event to the next of the same adapter and event: a command that fails in a loop is
	// not to keep the adapter busy, and to overwrite the set of its first failure at once. Changes of a port are not limited.
	causeGap = 10 * time.Second
)

// wants reports whether the keys allow sets of files of an event.
func (s *dumps) wants(d *Driver, r *running, e dump.Event) bool {
	const notDown, notUnknown, notUp = 1 << 2, 1 << 3, 1 << 4 // of DumpModeFlags
	if e.Generations&r.Generation == 0 {
		return false
	}
	if r.Generation == catalogue.MLX5 {
		return d.now(r, "MstDumpMode") != 0 && (e.Key == "" || d.now(r, e.Key) == e.When)
	}
	flags := d.now(r, "DumpModeFlags")
	switch e {
	case dump.PortDown:
		return flags&notDown == 0
	case dump.PortUnknown:
		return flags&notUnknown == 0
	case dump.PortUp:
		return flags&notUp == 0
	}
	return true
}

// on has a set of files written soon because of an event, if the keys allow it; name is the event's in the names of the files. It
// returns at once, with what is closed when they are written; nil: none are. Whoever notices an event may be anybody but the loop's
// owner.
func (s *dumps) on(d *Driver, index uint32, e dump.Event, name string) (written <-chan struct{}) {
	if !s.wants(d, d.running[index], e) {
		return nil
	}
	s.asked.Lock()
	defer s.asked.Unlock()
	now, cause := time.Now(), dumpCause{index, e.Name}
	if last, ok := s.latest[cause]; s.closed || e.Fatal && ok && now.Sub(last) < causeGap {
		return nil
	}
	if s.waiting == nil {
		s.waiting, s.done, s.latest = make(chan waitingDump, mostWaitingDumps), make(chan struct{}), map[dumpCause]time.Time{}
		go s.write(d)
	}
	done := make(chan struct{})
	select {
	case s.waiting <- waitingDump{index, e, name, done}:
		s.latest[cause] = now
		return done
	default:
		d.log.Warn("no dump: too many wait", "adapter", d.running[index].Name, "event", e.Name)
	}
	return nil
}

// write writes the sets of files that are asked for.
func (s *dumps) write(d *Driver) {
	defer close(s.done)
	for w := range s.waiting {
		r := d.running[w.index]
		out, err := d.dumpSet(w.index, dump.Set{Tag: w.event.Tag, Event: w.name})
		close(w.done)
		if err != nil {
			d.log.Warn("no dump", "adapter", r.Name, "event", w.event.Name, "error", err)
			continue
		}
		if w.event.Fatal {
			d.events.Raise(r.Generation, events.DumpAfterError{Adapter: r.Name, File: out.Files[0]})
		}
	}
}

// close writes what still waits.
func (s *dumps) close() {
	s.asked.Lock()
	s.closed = true
	waiting := s.waiting
	s.asked.Unlock()
	if waiting != nil {
		close(waiting)
		<-s.done
	}
}

// dumpPort writes a set of files when the state of a port has changed, if the keys ask for it.
func (d *Driver) dumpPort(index uint32, e dump.Event) {
	r := d.running[index]
	if !d.dumps.wants(d, r, e) {
		return
	}
	kind, state := "eth", "down"
	if r.cable() != nil {
		kind = "ib"
	}
	switch e {
	case dump.PortUp:
		state = "up"
	case dump.PortUnknown:
		state = "unknown"
	}
	name := fmt.Sprintf("%s-%s-%d", kind, state, d.cfg.Slot(int(index)).Port)
	if _, err := d.dumpSet(index, dump.Set{Tag: e.Tag, Event: name}); err != nil {
		d.log.Warn("no dump of a change of the port", "adapter", r.Name, "error", err)
	}
}

// commandFailed is told of commands that the driver could not carry out.
func (d *Driver) commandFailed(adapter int, r commandlog.Record) {
	d.dumps.on(d, uint32(adapter), dump.CommandError, "cmd-"+strings.ToLower(strings.ReplaceAll(r.Command, "_", "-")))
}
