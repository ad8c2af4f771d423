package driver

import (
	"fmt"
	"slices"
	"sync"
	"time"

	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/events"
)

// panicEvery is how often a panic of a request is kept in a folder of its own, at most: a client may repeat the request.
const panicEvery = 10 * time.Second

// panics are those of requests to the management interface.
type panics struct {
	mu   sync.Mutex
	n    uint64
	kept time.Time // the last one in a folder
}

func (p *panics) count() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// add counts a panic, and reports whether it is one to be kept.
func (p *panics) add(now time.Time) (keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if !p.kept.IsZero() && now.Sub(p.kept) < panicEvery {
		return false
	}
	p.kept = now
	return true
}

// requestPanicked reports a request to the management interface that ended in a panic. The server has logged its traceback.
func (d *Driver) requestPanicked(p apiserver.Panic) {
	folder := "-"
	if now := time.Now(); d.panics.add(now) {
		if kept, err := d.keepPanic(p, now); err != nil {
			d.log.Warn("the panic of a request is not kept", "cause", err)
		} else {
			folder = kept
		}
	}
	d.events.Raise(0, events.RequestPanicked{Request: p.Request, Cause: fmt.Sprint(p.Value), Folder: folder})
}

// keepPanic keeps what other faults leave: the traceback, the latest commands of all adapters, and the latest events.
func (d *Driver) keepPanic(p apiserver.Panic, at time.Time) (folder string, err error) {
	page, err := d.events.Query(events.Query{Limit: dumpEvents})
	if err != nil {
		return "", err
	}
	var all []commandlog.Record
	for i := range d.running {
		all = append(all, d.commands.Recent(uint32(i))...)
	}
	slices.SortStableFunc(all, func(a, b commandlog.Record) int { return a.Began.Compare(b.Began) })
	return d.keepFault(dump.Incident{Source: dump.Panic, Reason: "request", Time: at}, []dump.File{
		{Type: "commands", Text: dump.Commands(all)}, {Type: "fwtrace", Text: dump.Trace(page.Events, nil)},
		{Type: "traceback", Text: fmt.Appendf(nil, "panic: %v\nrequest: %s\n\n%s", p.Value, p.Request, p.Stack)},
	})
}
