package events

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Query selects events. Empty lists select all.
type Query struct {
	IDs      []uint32  `json:"ids,omitempty"`
	Sources  []string  `json:"sources,omitempty"`  // in any letter case
	Severity []string  `json:"severity,omitempty"` // Information, Warning, Error; in any letter case
	Adapters []string  `json:"adapters,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	// After is the number of the last event that the reader has seen; 0 with Limit means the newest.
	After uint64 `json:"after,omitempty"`
	// Limit is the maximum number of events; 0: MaxPage.
	Limit int `json:"limit,omitempty"`
}

// MaxPage is the maximum number of events that one query returns.
const MaxPage = 10000

// Page is the answer to a query.
type Page struct {
	Events []Record `json:"events"`
	// Next is the value of After with which to continue.
	Next uint64 `json:"next"`
	// Missed is how many events after After no longer exist.
	Missed uint64 `json:"missed,omitempty"`
	// NotKept says why events are currently not written to disk; empty: they are.
	NotKept string `json:"not_kept,omitempty"`
}

// FieldError says that a query is invalid.
type FieldError struct{ Field, Value, Allowed string }

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Value, e.Allowed)
}

// Check validates a query, with a *FieldError as error, and fills in the defaults.
func (q *Query) Check() error {
	for _, s := range q.Severity {
		if !slices.ContainsFunc(catalogue.Severities, func(x catalogue.Severity) bool { return strings.EqualFold(s, x.String()) }) {
			return &FieldError{"severity", fmt.Sprintf("%q", s), "Information, Warning, Error"}
		}
	}
	known := sources()
	for _, s := range q.Sources {
		if !containsFold(known, s) {
			return &FieldError{"source", fmt.Sprintf("%q", s), strings.Join(known, ", ")}
		}
	}
	if q.Limit < 0 || q.Limit > MaxPage {
		return &FieldError{"limit", fmt.Sprint(q.Limit), fmt.Sprintf("1 to %d", MaxPage)}
	}
	if q.Limit == 0 {
		q.Limit = MaxPage
	}
	return nil
}

func (q *Query) wants(r *Record) bool {
	return r.Sequence > q.After &&
		(len(q.IDs) == 0 || slices.Contains(q.IDs, r.ID)) &&
		(len(q.Sources) == 0 || containsFold(q.Sources, r.Source)) &&
		(len(q.Severity) == 0 || containsFold(q.Severity, r.Severity)) &&
		(len(q.Adapters) == 0 || slices.Contains(q.Adapters, r.Adapter)) &&
		(q.Since.IsZero() || !r.Time.Before(q.Since)) &&
		(q.Until.IsZero() || r.Time.Before(q.Until))
}

// sources returns the names of all sources of events.
func sources() (names []string) {
	for i := range catalogue.Events() {
		if !slices.Contains(names, catalogue.Events()[i].Source) {
			names = append(names, catalogue.Events()[i].Source)
		}
	}
	return names
}

func containsFold(all []string, s string) bool {
	return slices.ContainsFunc(all, func(x string) bool { return strings.EqualFold(x, s) })
}

// Query returns the matching events in order: with After the first ones after it, otherwise the newest.
func (l *Log) Query(q Query) (Page, error) {
	if err := q.Check(); err != nil {
		return Page{}, err
	}
	l.mu.Lock()
	recent := slices.Clone(l.recent)
	next := l.next
	var files []string
	if l.store != nil && (len(recent) == 0 || q.After+1 < recent[0].Sequence) {
		files = l.store.files(q.After)
	}
	p := Page{Events: []Record{}, Next: max(q.After, next-1)}
	if l.lost != nil {
		p.NotKept = l.lost.Error()
	}
	l.mu.Unlock()

	first := next // the oldest existing event
	full := false
	take := func(r Record) {
		first = min(first, r.Sequence)
		if full || !q.wants(&r) {
			return
		}
		p.Events = append(p.Events, r)
		switch {
		case q.After > 0 && len(p.Events) == q.Limit:
			full, p.Next = true, r.Sequence
		case q.After == 0 && len(p.Events) >= 2*q.Limit:
			p.Events = slices.Clone(p.Events[len(p.Events)-q.Limit:])
		}
	}
	before := next
	if len(recent) > 0 {
		before = recent[0].Sequence
	}
	for _, path := range files {
		b, err := os.ReadFile(path) // it may have been removed meanwhile
		if err != nil {
			continue
		}
		scanFrames(b, func(r Record) {
			if r.Sequence < before {
				take(r)
			}
		})
	}
	for _, r := range recent {
		take(r)
	}
	if n := len(p.Events); q.After == 0 && n > q.Limit {
		p.Events = p.Events[n-q.Limit:]
	}
	if q.After > 0 && first > q.After+1 {
		p.Missed = first - q.After - 1
	}
	return p, nil
}
