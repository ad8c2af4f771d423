// Package systemd speaks with the service manager that has started this process, by systemd's protocols of environment variables,
// descriptors and datagrams (sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3)), without its library.
package systemd

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// The variables of the protocols.
const (
	notifyVariable   = "NOTIFY_SOCKET"
	watchdogVariable = "WATCHDOG_USEC"
	watchdogPID      = "WATCHDOG_PID"
)

// Variables are what a service manager sets for the process that it starts, and for none that this one starts.
var Variables = []string{notifyVariable, watchdogVariable, watchdogPID, listenPID, listenCount, listenNames}

// What a service tells its manager about itself.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Status is a line for people.
func Status(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// patience is how long a manager may take no message.
const patience = time.Second

// Manager is the service manager of this process. Nil is none, to whom everything may be told.
type Manager struct {
	conn     *net.UnixConn
	watchdog time.Duration
}

// Connect returns the manager of the process with this ID, as its environment says; nil: there is none that wants to be told anything.
func Connect(getenv func(string) string, pid int) (*Manager, error) {
	path := getenv(notifyVariable)
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("%s is %q; allowed: an absolute path, or @ and a name", notifyVariable, path)
	}
	m := &Manager{}
	var err error
	if m.watchdog, err = watchdogOf(getenv, pid); err != nil {
		return nil, err
	}
	if m.conn, err = net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		return nil, fmt.Errorf("%s: %w", notifyVariable, err)
	}
	return m, nil
}

func watchdogOf(getenv func(string) string, pid int) (time.Duration, error) {
	text := getenv(watchdogVariable)
	if text == "" {
		return 0, nil
	}
	if p := getenv(watchdogPID); p != "" && p != strconv.Itoa(pid) {
		return 0, nil // another process is watched
	}
	us, err := strconv.ParseUint(text, 10, 63)
	if err != nil || us == 0 || us > uint64(1<<63-1)/uint64(time.Microsecond) {
		return 0, fmt.Errorf("%s is %q; allowed: microseconds from 1 on", watchdogVariable, text)
	}
	return time.Duration(us) * time.Microsecond, nil
}

// Watchdog returns how long the manager waits for Alive before it ends the process; 0: it does not.
func (m *Manager) Watchdog() time.Duration {
	if m == nil {
		return 0
	}
	return m.watchdog
}

// Tell tells the manager states of the process, in one message.
func (m *Manager) Tell(states ...string) error {
	if m == nil {
		return nil
	}
	err := m.conn.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = m.conn.Write([]byte(strings.Join(states, "\n")))
	}
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}

// Close ends the conversation.
func (m *Manager) Close() error {
	if m == nil {
		return nil
	}
	if err := m.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
