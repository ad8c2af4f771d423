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

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/journal"
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
	// journal: it is systemd's journal.
	journal bool
}

// OpenSystemLog opens the system log of that kind. The error is a *FieldError for a kind that does not
// exist.
func OpenSystemLog(kind string, log *slog.Logger) (*SystemLog, error) {
	return openSystemLog(kind, journal.Socket, "/dev/log", log)
}

// destination is where events go.
type destination struct {
	send    func(Record) error
	close   func()
	journal bool // systemd's
}

// toSyslog returns the destination behind a socket that takes lines.
func toSyslog(path string) (destination, error) {
	send, err := dialDatagram(path)
	if err != nil {
		return destination{}, err
	}
	return destination{send: func(r Record) error { return send(syslogLine(r)) }, close: func() { _ = send(nil) }}, nil
}

// toJournal returns the destination behind the socket of systemd's journal.
func toJournal(path string) (destination, error) {
	c, err := journal.Dial(path)
	if err != nil {
		return destination{}, err
	}
	return destination{send: func(r Record) error { return c.Send(journalEntry(r)) }, close: func() { _ = c.Close() }, journal: true}, nil
}

func openDestination(kind, socket, syslog string) (destination, error) {
	switch kind {
	case Journald:
		return toJournal(socket)
	case Syslog:
		return toSyslog(syslog)
	case EventLog:
		return openEventLog()
	}
	var none error
	for _, k := range []string{Journald, Syslog, EventLog} {
		to, err := openDestination(k, socket, syslog)
		if err == nil {
			return to, nil
		}
		none = errors.Join(none, fmt.Errorf("%s: %w", k, err))
	}
	return destination{}, none
}

func openSystemLog(kind, socket, syslog string, log *slog.Logger) (*SystemLog, error) {
	if kinds := []string{Journald, Syslog, EventLog, AnyLog}; !slices.Contains(kinds, kind) {
		return nil, &FieldError{"system log", strconv.Quote(kind), strings.Join(kinds, ", ")}
	}
	to, err := openDestination(kind, socket, syslog)
	if err != nil {
		return nil, fmt.Errorf("system log %s: %w", kind, err)
	}
	s := &SystemLog{queue: make(chan Record, waitingForSystemLog), journal: to.journal}
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

// Journal reports whether the log is systemd's journal.
func (s *SystemLog) Journal() bool { return s.journal }

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

// journalEntry returns an event in journald's native protocol.
func journalEntry(r Record) (b []byte) {
	for _, f := range [][2]string{
		{"MESSAGE", r.Message}, {"PRIORITY", strconv.Itoa(priority(r.Severity))}, {"SYSLOG_IDENTIFIER", "softvpi"},
		{"SYSLOG_FACILITY", strconv.Itoa(facilityDaemon)}, {"SOFTVPI_SOURCE", r.Source}, {"SOFTVPI_ID", strconv.FormatUint(uint64(r.ID), 10)},
		{"SOFTVPI_SYMBOL", r.Symbol}, {"SOFTVPI_SEQUENCE", strconv.FormatUint(r.Sequence, 10)},
		{"MESSAGE_ID", catalogue.MessageID(r.Source, r.ID)},
	} {
		if f[1] != "" || f[0] == "MESSAGE" {
			b = journal.Field(b, f[0], f[1])
		}
	}
	for name, value := range r.Fields {
		b = journal.Field(b, journal.FieldName(name), value)
	}
	return b
}
