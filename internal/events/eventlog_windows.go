package events

import (
	"golang.org/x/sys/windows/svc/eventlog"

	"github.com/softvpi/softvpi/internal/os/service"
)

// openEventLog opens Windows' event log. Its source has the name of the service.
func openEventLog() (destination, error) {
	l, err := eventlog.Open(service.Name)
	if err != nil {
		return destination{}, err
	}
	send := func(r Record) error {
		e := newEventEntry(r)
		switch e.severity {
		case "Error":
			return l.Error(e.id, e.text)
		case "Warning":
			return l.Warning(e.id, e.text)
		}
		return l.Info(e.id, e.text)
	}
	return destination{send: send, close: func() { _ = l.Close() }}, nil
}
