package events

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of system log.
const (
	Journald = "journald" // systemd's journal, with the fields of events
	Syslog   = "syslog"   // /dev/log
	EventLog = "eventlog" // that of Windows
	AnyLog   = "auto"     // the first of these that there is
)

// waitingForSystemLog is how many events may wait for the system log before further ones are dropped.
const waitingForSystemLog = 256

// SystemLog passes events to the system's log. Its Write is a sink of a Log.
type SystemLog struct {
	queue chan Record
	lost  atomic.Uint64 // events that did not get there
	wg    sync.WaitGroup
	once  sync.Once
}

// OpenSystemLog opens the system log of that kind. The error is a *FieldError for a kind that does not
// exist.
func OpenSystemLog(kind string, log *slog.Logger) (*SystemLog, error) {
	return openSystemLog(kind, "/run/systemd/journal/socket", "/dev/log", log)
}

// destination is where events go.
type destination struct {
	send  func(Record) error
	close func()
}

// toSocket returns the destination behind a socket that takes datagrams of a form.
func toSocket(path string, form func(Record) []byte) (destination, error) {
	send, err := dialDatagram(path)
	if err != nil {
		return destination{}, err
	}
	return destination{func(r Record) error { return send(form(r)) }, func() { _ = send(nil) }}, nil
}

func openDestination(kind, journal, syslog string) (destination, error) {
	switch kind {
	case Journald:
		return toSocket(journal, journalEntry)
	case Syslog:
		return toSocket(syslog, syslogLine)
	case EventLog:
		return openEventLog()
	}
	var none error
	for _, k := range []string{Journald, Syslog, EventLog} {
		to, err := openDestination(k, journal, syslog)
		if err == nil {
			return to, nil
		}
		none = errors.Join(none, fmt.Errorf("%s: %w", k, err))
	}
	return destination{}, none
}

func openSystemLog(kind, journal, syslog string, log *slog.Logger) (*SystemLog, error) {
	if kinds := []string{Journald, Syslog, EventLog, AnyLog}; !slices.Contains(kinds, kind) {
		return nil, &FieldError{"system log", strconv.Quote(kind), strings.Join(kinds, ", ")}
	}
	to, err := openDestination(kind, journal, syslog)
	if err != nil {
		return nil, fmt.Errorf("system log %s: %w", kind, err)
	}
	s := &SystemLog{queue: make(chan Record, waitingForSystemLog)}
	s.wg.Go(func() {
		defer to.close()
		failed, told := false, uint64(0)
		for r := range s.queue {
			if err := to.send(r); err != nil {
				s.lost.Add(1)
				if !failed && log != nil {
					log.Warn("an event did not get to the system log", "error", err)
				}
				failed = true
				continue
			}
			failed = false
			if n := s.lost.Load(); n != told && log != nil {
				log.Warn("events did not get to the system log", "events", n-told)
				told = n
			}
		}
	})
	return s, nil
}

// Write passes an event on, or drops it if too many are waiting.
func (s *SystemLog) Write(r Record) {
	select {
	case s.queue <- r:
	default:
		s.lost.Add(1)
	}
}

// Close writes what is waiting. Write must not be called afterwards.
func (s *SystemLog) Close() {
	s.once.Do(func() { close(s.queue) })
	s.wg.Wait()
}

// priority returns the syslog severity of an event (RFC 5424, 6.2.1).
func priority(severity string) int {
	switch severity {
	case "Error":
		return 3
	case "Warning":
		return 4
	}
	return 6
}

const facilityDaemon = 3

// syslogLine returns an event in the format of RFC 3164.
func syslogLine(r Record) []byte {
	return fmt.Appendf(nil, "<%d>%s softvpi[%d]: %s 0x%04x: %s", facilityDaemon*8+priority(r.Severity),
		r.Time.Local().Format(time.Stamp), os.Getpid(), r.Source, r.ID, r.Message)
}

// journalEntry returns an event in journald's native protocol: a line for each field, none of which
// contains a line break.
func journalEntry(r Record) []byte {
	var b strings.Builder
	field := func(name, value string) { b.WriteString(name + "=" + value + "\n") }
	field("MESSAGE", r.Message)
	field("PRIORITY", strconv.Itoa(priority(r.Severity)))
	field("SYSLOG_IDENTIFIER", "softvpi")
	field("SYSLOG_FACILITY", strconv.Itoa(facilityDaemon))
	field("SOFTVPI_SOURCE", r.Source)
	field("SOFTVPI_ID", strconv.FormatUint(uint64(r.ID), 10))
	field("SOFTVPI_SYMBOL", r.Symbol)
	field("SOFTVPI_SEQUENCE", strconv.FormatUint(r.Sequence, 10))
	for name, value := range r.Fields {
		field("SOFTVPI_"+strings.ToUpper(name), value)
	}
	return []byte(b.String())
}
