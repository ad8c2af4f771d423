package driver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/wake"
)

const (
	// wakeTime is how long a command that a wake-up starts may run.
	wakeTime = 30 * time.Second
	// wakeOutput is how much of what it prints is reported.
	wakeOutput = 1024
)

// waking runs the commands of adapters that frames woke up.
type waking struct {
	sync.Mutex
	patterns map[int][]wake.Pattern // with which adapters sleep
	running  map[int]bool           // adapters whose command runs
	end      context.CancelFunc
	ended    context.Context
	all      sync.WaitGroup
}

// SleepAdapter puts the host of an adapter's Ethernet function to sleep until a frame wakes it ("WinOF-2 Ethernet Network",
// Wake-on-LAN), or wakes it.
func (d *Driver) SleepAdapter(q api.SleepRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	patterns, err := parsePatterns(q.Patterns)
	if err != nil {
		return err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	r := d.running[index]
	if !q.Sleep {
		if len(patterns) > 0 {
			return api.Wrong("patterns", "given", "nothing for an adapter that is to wake up")
		}
		slept, err := d.host.WakeEthernet(index)
		if slept {
			d.events.Raise(r.Generation, events.AdapterWoken{Adapter: r.Name, Cause: "a request"})
		}
		return err
	}
	d.waking.Lock()
	before := d.waking.patterns[int(index)]
	d.waking.remember(int(index), patterns) // before the first frame can match
	d.waking.Unlock()
	if err := d.host.SleepEthernet(index, patterns); err != nil {
		d.waking.Lock()
		d.waking.remember(int(index), before)
		d.waking.Unlock()
		return err
	}
	d.events.Raise(r.Generation, events.AdapterAsleep{Adapter: r.Name, Patterns: uint32(len(patterns))})
	return nil
}

func parsePatterns(texts []string) (list []wake.Pattern, err error) {
	if len(texts) > wake.MaxPatterns {
		return nil, api.Wrong("patterns", fmt.Sprint(len(texts)), fmt.Sprintf("at most %d", wake.MaxPatterns))
	}
	for i, text := range texts {
		p, err := wake.ParsePattern(text)
		if err != nil {
			return nil, api.Wrong(fmt.Sprintf("patterns[%d]", i), strconv.Quote(text), wake.Form)
		}
		list = append(list, p)
	}
	return list, nil
}

// remember keeps the patterns of an adapter; the caller holds the lock.
func (w *waking) remember(i int, patterns []wake.Pattern) {
	if w.patterns == nil {
		w.patterns = map[int][]wake.Pattern{}
	}
	w.patterns[i] = patterns
}

// tellWoken writes the event of a frame that has woken adapter i, and starts the command for it.
func (d *Driver) tellWoken(i int, e ethernet.Event) {
	reason, pattern := "magic", ""
	cause := "a magic packet"
	if e.Pattern >= 0 {
		d.waking.Lock()
		if list := d.waking.patterns[i]; e.Pattern < len(list) {
			pattern = list[e.Pattern].String()
		}
		d.waking.Unlock()
		reason, cause = "pattern", "the pattern "+pattern
	}
	r := d.running[i]
	d.events.Raise(r.Generation, events.AdapterWoken{Adapter: r.Name, Cause: cause})
	if command := d.cfg.Adapters[i].Wake; len(command) > 0 {
		d.startWake(i, command, append(os.Environ(), "SOFTVPI_ADAPTER="+r.Name, "SOFTVPI_WAKE_REASON="+reason,
			"SOFTVPI_WAKE_PATTERN="+pattern))
	}
}

// startWake runs the command of adapter i, unless that of an earlier wake-up still runs.
func (d *Driver) startWake(i int, command, environment []string) {
	w := &d.waking
	w.Lock()
	defer w.Unlock()
	if w.running == nil {
		w.running = map[int]bool{}
		w.ended, w.end = context.WithCancel(context.Background())
	}
	r := d.running[i]
	if w.running[i] {
		d.events.Raise(r.Generation, events.WakeCommandFailed{Adapter: r.Name, Command: command[0],
			Cause: fmt.Errorf("the one of an earlier wake-up still runs")})
		return
	}
	w.running[i] = true
	w.all.Go(func() {
		ctx, cancel := context.WithTimeout(w.ended, wakeTime)
		defer cancel()
		err := runWake(ctx, command, environment)
		w.Lock()
		delete(w.running, i)
		w.Unlock()
		if err != nil {
			d.besides.Warn("the wake command failed", "adapter", r.Name, "command", command[0], "cause", err)
			d.events.Raise(r.Generation, events.WakeCommandFailed{Adapter: r.Name, Command: command[0], Cause: err})
		}
	})
}

// runWake runs a command, without a shell, until it ends or the context does.
func runWake(ctx context.Context, command, environment []string) error {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	var out tail
	c.Env, c.Stdout, c.Stderr, c.WaitDelay = environment, &out, &out, time.Second
	alone(c)
	err := c.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("it was ended after %v at most, or with the driver: %w", wakeTime, ctx.Err())
	}
	if text := bytes.TrimSpace(out.b); len(text) > 0 {
		return fmt.Errorf("%w: %q", err, text)
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.b = append(t.b, p[max(0, n-wakeOutput):]...)
	t.b = append(t.b[:0], t.b[max(0, len(t.b)-wakeOutput):]...)
	return n, nil
}

// close ends the commands that run.
func (w *waking) close() {
	w.Lock()
	end := w.end
	w.Unlock()
	if end != nil {
		end()
		w.all.Wait()
	}
}
