package events

import (
	"fmt"
	"log/slog"
	"os"
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
	AnyLog   = "auto"     // the journal or, without it, /dev/log
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

func openSystemLog(kind, journal, syslog string, log *slog.Logger) (*SystemLog, error) {
	var (
		send func([]byte) error
		form func(Record) []byte
		err  error
	)
	switch kind {
	case Journald:
		send, err = dialDatagram(journal)
		form = journalEntry
	case Syslog:
		send, err = dialDatagram(syslog)
		form = syslogLine
	case AnyLog:
		s, err := openSystemLog(Journald, journal, syslog, log)
		if err != nil {
			return openSystemLog(Syslog, journal, syslog, log)
		}
		return s, nil
	default:
		return nil, &FieldError{"system log", strconv.Quote(kind), "journald, syslog, auto"}
	}
	if err != nil {
		return nil, fmt.Errorf("system log %s: %w", kind, err)
	}
	s := &SystemLog{queue: make(chan Record, waitingForSystemLog)}
	s.wg.Go(func() {
		failed, told := false, uint64(0)
		for r := range s.queue {
			if err := send(form(r)); err != nil {
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
		_ = send(nil) // closes it
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
