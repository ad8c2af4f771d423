package web

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/events"
)

// eventsView is the contents of the event viewer.
type eventsView struct {
	Filter     url.Values
	Severities []string
	Page       events.Page
}

// Chosen reports whether the filter includes a value of a field.
func (v eventsView) Chosen(field, value string) bool { return slices.Contains(v.Filter[field], value) }

// Query returns the filter as parameters for the stream of new events.
func (v eventsView) Query() string { return v.Filter.Encode() }

// events shows the newest events that match the filter, the newest first.
func (s *Server) events(q *request) error {
	v, err := s.view(q, "Events", "events")
	if err != nil {
		return err
	}
	d := eventsView{Filter: url.Values{}}
	for _, x := range catalogue.Severities {
		d.Severities = append(d.Severities, x.String())
	}
	in := q.r.URL.Query()
	for _, name := range []string{"severity", "adapter", "source", "id", "since", "until"} {
		for _, value := range in[name] {
			if value = strings.TrimSpace(value); value != "" {
				d.Filter.Add(name, value)
			}
		}
	}
	ask := url.Values{"limit": {"200"}}
	for name, values := range d.Filter {
		ask[name] = values
	}
	for _, name := range []string{"since", "until"} {
		if at, err := time.ParseInLocation("2006-01-02T15:04", ask.Get(name), time.Local); err == nil { // the format that browsers send
			ask.Set(name, at.Format(time.RFC3339))
		}
	}
	if err := s.client.Get(q.r.Context(), "/events", ask, &d.Page); err != nil {
		v.Problem = sentence(err.Error())
	}
	slices.Reverse(d.Page.Events)
	v.Data = d
	return s.show(q, "events", v)
}

// pass forwards a read request to the management interface.
func (s *Server) pass(path string) func(*request) error {
	return func(q *request) error {
		r := q.r.Clone(withReading(q.r.Context()))
		r.URL = &url.URL{Path: path, RawQuery: q.r.URL.RawQuery}
		r.RequestURI = r.URL.RequestURI()
		s.cfg.API.Handler().ServeHTTP(q.w, r)
		return nil
	}
}
