// Package subnets keeps what is said of virtual subnets (WinOF-2 1.21, 3.3.2.3.1: New-NetVirtualizationLookupRecord and the like): lookup
// records and customer routes, which are for all adapters, and provider addresses and routes, which are an adapter's. What comes of it is
// internal/overlay's.
package subnets

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/registry"
)

// Config is what the subnets stand on.
type Config struct {
	Registry *registry.Registry
	// Place returns the name of an adapter that can have provider addresses, or why it has none.
	Place func(adapter string) (string, error)
	// Follow tells who sends frames that something has changed.
	Follow func() error
	Log    *slog.Logger
}

// Subnets are the entries of a driver.
type Subnets struct {
	cfg Config
	ops sync.Mutex // held while something is changed
	mu  sync.Mutex // held shortly, also to look
	all []api.OverlayEntry
}

// New returns the entries that the registry keeps. What is not allowed any more is left out, and said in the log.
func New(cfg Config) *Subnets {
	s := &Subnets{cfg: cfg}
	for _, line := range cfg.Registry.Overlay() {
		words := split(line)
		if len(words) == 0 {
			continue
		}
		e, _, err := parse(words[0], words[1:], true)
		if err == nil {
			err = s.check(append(slices.Clone(s.all), e))
		}
		if err != nil {
			cfg.Log.Warn("an entry of a virtual subnet that was kept is not allowed", "entry", line, "cause", err)
			continue
		}
		s.all = append(s.all, e)
	}
	return s
}

// Configure has the entries of the driver's configuration, as words, beside those of commands. The error names the one that cannot be.
func (s *Subnets) Configure(lines []string) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	for i, line := range lines {
		words := split(line)
		if len(words) == 0 {
			return fmt.Errorf("overlay[%d]: %w", i, api.Wrong("entry", `""`, "a kind and its settings, as \"record vsid=5001 ...\""))
		}
		e, _, err := parse(words[0], words[1:], true)
		if err == nil {
			err = s.place(&e)
		}
		if err != nil {
			return fmt.Errorf("overlay[%d]: %w", i, err)
		}
		e.Configured = true
		// What a command has said before is the configuration's now.
		next := slices.DeleteFunc(slices.Clone(s.all), func(o api.OverlayEntry) bool { return !o.Configured && sameWords(&o, &e) })
		if next = append(next, e); s.check(next) != nil {
			return fmt.Errorf("overlay[%d]: %w", i, s.check(next))
		}
		s.put(next)
	}
	return s.cfg.Follow()
}

func sameWords(a, b *api.OverlayEntry) bool {
	return a.Kind == b.Kind && slices.Equal(a.Words(), b.Words())
}

// check returns why entries cannot be together. What it says of a field of a table is said of the setting.
func (s *Subnets) check(all []api.OverlayEntry) error {
	t := tables(all, "")
	var wrong *overlay.FieldError
	if err := t.Check(); errors.As(err, &wrong) {
		return api.Wrong(wrong.Field, fmt.Sprint(wrong.Value), wrong.Want)
	}
	return nil
}

// place writes an adapter's name as it is, if the entry names one.
func (s *Subnets) place(e *api.OverlayEntry) (err error) {
	if e.Adapter != "" {
		e.Adapter, err = s.cfg.Place(e.Adapter)
	}
	return err
}

func (s *Subnets) put(all []api.OverlayEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
}

// Entries returns all entries.
func (s *Subnets) Entries() []api.OverlayEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]api.OverlayEntry{}, s.all...)
}

// Tables returns those of an adapter.
func (s *Subnets) Tables(adapter string) overlay.Tables { return tables(s.Entries(), adapter) }

// tables returns those of an adapter; without a name, of all together.
func tables(all []api.OverlayEntry, adapter string) (t overlay.Tables) {
	for i := range all {
		if e := &all[i]; adapter == "" || e.Adapter == "" || e.Adapter == adapter {
			add(&t, e)
		}
	}
	return t
}

// AddOverlayEntry implements server.OverlaySource.
func (s *Subnets) AddOverlayEntry(q api.OverlayRequest) (api.OverlayEntry, error) {
	s.ops.Lock()
	defer s.ops.Unlock()
	e, _, err := parse(q.Kind, q.Settings, true)
	if err == nil {
		err = s.place(&e)
	}
	if err != nil {
		return e, err
	}
	return e, s.change(append(s.Entries(), e))
}

// RemoveOverlayEntries implements server.OverlaySource.
func (s *Subnets) RemoveOverlayEntries(q api.OverlayRequest) ([]api.OverlayEntry, error) {
	s.ops.Lock()
	defer s.ops.Unlock()
	want, given, err := parse(q.Kind, q.Settings, false)
	if err != nil {
		return nil, err
	}
	removed, kept := []api.OverlayEntry{}, []api.OverlayEntry{}
	for _, e := range s.Entries() {
		switch {
		case !matches(&e, &want, given):
			kept = append(kept, e)
		case e.Configured:
			return nil, api.Wrong("entry", fmt.Sprintf("%q, which the driver's configuration has", strings.Join(e.Words(), " ")),
				"those that were added by command")
		default:
			removed = append(removed, e)
		}
	}
	if len(removed) == 0 {
		return removed, nil
	}
	return removed, s.change(kept)
}

// change makes other entries count, and keeps them: all or nothing. The caller holds ops.
func (s *Subnets) change(next []api.OverlayEntry) error {
	if err := s.check(next); err != nil {
		return err
	}
	before := s.Entries()
	s.put(next)
	err := s.cfg.Registry.Apply(registry.KeepOverlay(lines(next)))
	if err == nil {
		err = s.cfg.Follow()
	}
	if err == nil {
		return nil
	}
	s.put(before)
	return errors.Join(err, s.cfg.Registry.Apply(registry.KeepOverlay(lines(before))), s.cfg.Follow())
}

// lines are the entries of commands as words.
func lines(all []api.OverlayEntry) (list []string) {
	for i := range all {
		if e := &all[i]; !e.Configured {
			list = append(list, e.Kind+"\t"+strings.Join(e.Words(), "\t"))
		}
	}
	return list
}
