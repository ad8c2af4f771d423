package driver

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/softvpi/softvpi/internal/os/journal"
)

// TestBesideEvents: what is logged and an event is one entry of a journal that gets both, and is in the log as well wherever that goes
// elsewhere.
func TestBesideEvents(t *testing.T) {
	var entries, lines bytes.Buffer
	text := slog.NewTextHandler(&lines, nil)
	toJournal := slog.New(journal.NewHandler(func(b []byte) error { entries.Write(b); return nil }, slog.LevelInfo, text))
	for _, c := range []struct {
		log    *slog.Logger
		events bool // they go to the journal
		kept   bool
	}{{toJournal, true, false}, {toJournal, false, true}, {slog.New(text), true, true}, {slog.New(text), false, true}} {
		entries.Reset()
		lines.Reset()
		besideEvents(c.log, c.events).Error("the driver before died")
		if kept := entries.Len()+lines.Len() > 0; kept != c.kept {
			t.Errorf("%T with events in the journal %v: kept %v", c.log.Handler(), c.events, kept)
		}
	}
}
