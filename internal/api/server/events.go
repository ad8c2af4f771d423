package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/events"
)

// keepAlive is how often a stream without news sends a sign of life.
const keepAlive = 15 * time.Second

// followEvents serves the event log as server-sent events: those after the number in Last-Event-ID or in
// the query's "after", then new ones as they occur. A reader that takes nothing for the write limit is
// dropped.
func (s *Server) followEvents(log *events.Log) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := followQuery(r, log)
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		stream := &eventStream{w: w, control: http.NewResponseController(w), limit: s.limits.Write}
		if stream.send(": events follow\n\n") != nil {
			return
		}
		for {
			ctx, cancel := context.WithTimeout(r.Context(), keepAlive)
			page, err := log.QueryWait(ctx, q)
			cancel()
			if err != nil || r.Context().Err() != nil {
				return
			}
			if stream.page(page) != nil {
				return
			}
			select {
			case <-s.done:
				return
			default:
			}
			q.After = page.Next
		}
	}
}

// followQuery returns where a reader starts: after the last event that it saw, or with the next one.
func followQuery(r *http.Request, log *events.Log) (events.Query, error) {
	v := r.URL.Query()
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		v.Set("after", id)
	}
	q, err := events.ParseQuery(v)
	if err != nil || v.Has("after") {
		return q, err
	}
	newest, err := log.Query(events.Query{Limit: 1})
	q.After = newest.Next
	return q, err
}

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

func (s *eventStream) page(p events.Page) error {
	if p.Missed > 0 {
		if err := s.send(fmt.Sprintf("event: missed\ndata: %d\n\n", p.Missed)); err != nil {
			return err
		}
	}
	for _, e := range p.Events {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := s.send("id: " + strconv.FormatUint(e.Sequence, 10) + "\nevent: event\ndata: " + string(b) + "\n\n"); err != nil {
			return err
		}
	}
	if len(p.Events) == 0 {
		return s.send(": nothing new\n\n")
	}
	return nil
}

func (s *eventStream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.limit)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
