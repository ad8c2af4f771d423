package server

import (
	"context"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
)

// eventQuery selects events. Empty lists select all.
type eventQuery struct {
	IDs      []string  `query:"id,explode" doc:"Numbers of events, decimal or 0x...; any number of times."`
	Sources  []string  `query:"source,explode" doc:"In any letter case; any number of times."`
	Severity []string  `query:"severity,explode" doc:"Information, Warning, Error; in any letter case, any number of times."`
	Adapters []string  `query:"adapter,explode" doc:"Any number of times."`
	Since    time.Time `query:"since"`
	Until    time.Time `query:"until"`
	After    uint64    `query:"after" doc:"The number of the last event that the reader has seen. With only a limit: the newest."`
	Limit    int       `query:"limit" minimum:"1" maximum:"10000"`
	Wait     string    `query:"wait" doc:"A duration up to 1m: if there is no later event, wait that long for one; the answer is empty if none comes."`
}

// maxEventWait limits how long a request waits for an event.
const maxEventWait = time.Minute

// query converts the request to a query of the log.
func (in *eventQuery) query() (events.Query, error) {
	q := events.Query{
		Sources: in.Sources, Severity: in.Severity, Adapters: in.Adapters, Since: in.Since, Until: in.Until, After: in.After,
		Limit: in.Limit,
	}
	for _, text := range in.IDs {
		id, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return q, api.Wrong("id", strconv.Quote(text), "a number, decimal or 0x...")
		}
		q.IDs = append(q.IDs, uint32(id))
	}
	return q, nil
}

// waitForEvents is the log's QueryWait for up to d. It gives up the request's turn while it waits.
func waitForEvents(ctx context.Context, log *events.Log, q events.Query, d time.Duration) (page events.Page, err error) {
	first := q
	first.Limit = 1
	busy := aside(ctx, func() {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		page, err = log.QueryWait(ctx, first)
	})
	if busy != nil {
		return page, busy
	}
	if err != nil || len(page.Events) == 0 {
		return page, err
	}
	return log.Query(q)
}

// eventRoutes adds the routes for the event log.
func (s *Server) eventRoutes(log *events.Log) {
	register(s, operation("GET", "/events", "events", "The event log"),
		func(ctx context.Context, in *eventQuery) (*one[events.Page], error) {
			q, err := in.query()
			if err != nil {
				return nil, err
			}
			if in.Wait == "" {
				page, err := log.Query(q)
				return body(page), err
			}
			d, err := time.ParseDuration(in.Wait)
			if err != nil || d < 0 || d > maxEventWait {
				return nil, api.Wrong("wait", strconv.Quote(in.Wait), "a duration up to 1m")
			}
			page, err := waitForEvents(ctx, log, q, d)
			return body(page), err
		})
	follow := operation("GET", "/events/follow", "follow-events",
		"The event log as server-sent events, from now or behind the event that Last-Event-ID names")
	follow.Parameters = s.parameters(eventQuery{}, "wait", "limit")
	s.raw(follow, "text/event-stream", s.followEvents(log))
}
