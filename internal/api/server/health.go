package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

// stuck is the health of a driver that has not answered for so long.
func stuck(after time.Duration) api.Health {
	return api.Health{Reasons: []api.HealthProblem{{Check: api.CheckProgress,
		Text: fmt.Sprintf("the driver's loop has not answered for %v", after)}}}
}

// probe asks a driver for its status within a time. Whoever asks meanwhile waits for the same answer, so that a driver that does not
// answer is asked once.
type probe struct {
	limit   time.Duration
	mu      sync.Mutex
	current *question
}

type question struct {
	answered chan struct{}
	status   api.Status // once answered
}

// healthPatience is how long a driver that makes progress may take for its status: the loop's turns take microseconds, but the processors
// may be busy.
const healthPatience = 5 * time.Second

func (p *probe) ask(overview func() api.Status) *question {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return p.current
	}
	q := &question{answered: make(chan struct{})}
	p.current = q
	go func() {
		q.status = overview()
		p.mu.Lock()
		p.current = nil
		p.mu.Unlock()
		close(q.answered)
	}()
	return q
}

func (p *probe) health(ctx context.Context, overview func() api.Status) (api.Health, error) {
	q := p.ask(overview)
	timer := time.NewTimer(p.limit)
	defer timer.Stop()
	select {
	case <-q.answered:
		return api.Readiness(q.status), nil
	case <-timer.C:
		return stuck(p.limit), nil
	case <-ctx.Done():
		return api.Health{}, ctx.Err()
	}
}

// healthAnswer has the status 503 if the driver is not what was asked for.
type healthAnswer struct {
	Status int
	Body   api.Health
}

func (s *Server) healthRoutes(d Driver) {
	p := &probe{limit: healthPatience}
	for _, r := range []struct {
		path, id, summary string
		good              func(api.Health) bool
	}{
		{"/health", "health", "Whether the driver is live and ready, and why not", func(api.Health) bool { return true }},
		{"/health/live", "health-live", "Whether the driver makes progress; 503: it does not", func(h api.Health) bool { return h.Live }},
		{"/health/ready", "health-ready", "Whether every enabled adapter passes packets; 503: one does not, and the reasons",
			func(h api.Health) bool { return h.Live && h.Ready }},
	} {
		op := operation("GET", r.path, r.id, r.summary)
		register(s, op, func(ctx context.Context, _ *struct{}) (*healthAnswer, error) {
			h, err := p.health(ctx, d.Overview)
			if err != nil {
				return nil, err
			}
			answer := &healthAnswer{http.StatusOK, h}
			if !r.good(h) {
				answer.Status = http.StatusServiceUnavailable
			}
			return answer, nil
		})
	}
}
