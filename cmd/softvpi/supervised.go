package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/os/systemd"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// supervised is a driver that a service manager may have started: it says when it is up, how it is, and that it is alive.
type supervised struct {
	manager *systemd.Manager // nil: nobody
	sockets []*net.UnixListener
	log     *slog.Logger

	mu   sync.Mutex
	said string // the last status
}

// superviseMe takes over what a service manager has left for this process in its environment, which others do not inherit then.
func superviseMe() (*supervised, error) {
	v := &supervised{}
	var err, wrong error
	v.manager, err = systemd.Connect(os.Getenv, os.Getpid())
	v.sockets, wrong = systemd.Sockets(os.Getenv, os.Getpid())
	for _, name := range systemd.Variables {
		_ = os.Unsetenv(name)
	}
	if err = errors.Join(err, wrong); err != nil {
		v.close()
		return nil, tool.Usagef("%v", err)
	}
	return v, nil
}

// watch makes a driver tell the manager of each answer of its loop, if the manager watches.
func (v *supervised) watch(o *driver.Options, log *slog.Logger) {
	v.log, o.Sockets = log, v.sockets
	if v.manager.Watchdog() == 0 {
		return
	}
	o.Within, o.Answered = v.manager.Watchdog(), func(s driver.Status) { v.tell(s, systemd.Alive) }
}

// ready says that programs can attach.
func (v *supervised) ready(s driver.Status) { v.tell(s, systemd.Ready) }

// stopping says that the driver stops.
func (v *supervised) stopping() { v.send(systemd.Stopping, systemd.Status("stopping")) }

// tell sends a state, and the status if it is another one.
func (v *supervised) tell(s driver.Status, state string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	states := []string{state}
	if now := conditionOf(s); now != v.said {
		v.said = now
		states = append(states, systemd.Status(now))
	}
	v.send(states...)
}

func (v *supervised) send(states ...string) {
	if err := v.manager.Tell(states...); err != nil {
		v.log.Warn("the service manager was not told", "states", states, "cause", err)
	}
}

func (v *supervised) close() {
	_ = v.manager.Close() // it has heard what there was to say
	for _, l := range v.sockets {
		_ = l.Close() // most of them the driver has closed
	}
}

// conditionOf says in a line how a driver is.
func conditionOf(s driver.Status) string {
	h := api.Readiness(s)
	if h.Ready {
		return fmt.Sprintf("%d adapters ready, %d programs attached", len(s.Adapters), len(s.Programs))
	}
	var why []string
	for _, r := range h.Reasons {
		why = append(why, r.Adapter+": "+r.Text)
	}
	return strings.Join(why, "; ")
}
