package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Health says whether the driver works, for probes of whatever runs it.
type Health struct {
	// Live: the driver makes progress. If it does not, only a restart helps.
	Live bool `json:"live"`
	// Ready: every enabled adapter passes packets. If one does not, its peers or its wire may be the reason, and a restart may not help.
	Ready   bool            `json:"ready"`
	Reasons []HealthProblem `json:"reasons"` // why not; empty if it is both
}

// HealthProblem is a reason why a driver is not live or not ready.
type HealthProblem struct {
	Check   string `json:"check" doc:"What failed: progress, link, self-healing."`
	Adapter string `json:"adapter" doc:"Empty if it is about the driver."`
	Text    string `json:"text"`
}

// The checks of a HealthProblem.
const (
	CheckProgress = "progress"
	CheckLink     = "link"
	CheckHealing  = "self-healing"
)

// Readiness returns the health of a driver that has answered with this status.
func Readiness(s Status) Health {
	h := Health{Live: true, Reasons: []HealthProblem{}}
	for i := range s.Adapters {
		a := &s.Adapters[i]
		switch p := a.InfiniBand; {
		case a.Healing != nil && a.Healing.Stopped:
			h.Reasons = append(h.Reasons, HealthProblem{CheckHealing, a.Name, "self-healing has stopped the adapter, since restarts did not help"})
		case !a.Enabled:
		case p != nil && p.State != "Active":
			h.Reasons = append(h.Reasons, HealthProblem{CheckLink, a.Name, "the InfiniBand port is " + p.State})
		case p == nil && !a.Up:
			h.Reasons = append(h.Reasons, HealthProblem{CheckLink, a.Name, "the link is down"})
		}
	}
	h.Ready = len(h.Reasons) == 0
	return h
}

// stuck is the health of a driver that has not answered for so long.
func stuck(after time.Duration) Health {
	return Health{Reasons: []HealthProblem{{CheckProgress, "", fmt.Sprintf("the driver's loop has not answered for %v", after)}}}
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
	status   Status // once answered
}

// healthPatience is how long a driver that makes progress may take for its status: the loop's turns take microseconds, but the processors
// may be busy.
const healthPatience = 5 * time.Second

func (p *probe) ask(overview func() Status) *question {
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

func (p *probe) health(ctx context.Context, overview func() Status) (Health, error) {
	q := p.ask(overview)
	timer := time.NewTimer(p.limit)
	defer timer.Stop()
	select {
	case <-q.answered:
		return Readiness(q.status), nil
	case <-timer.C:
		return stuck(p.limit), nil
	case <-ctx.Done():
		return Health{}, ctx.Err()
	}
}

// healthAnswer has the status 503 if the driver is not what was asked for.
type healthAnswer struct {
	Status int
	Body   Health
}

func (s *Server) healthRoutes(d Driver) {
	p := &probe{limit: healthPatience}
	for _, r := range []struct {
		path, id, summary string
		good              func(Health) bool
	}{
		{"/health", "health", "Whether the driver is live and ready, and why not", func(Health) bool { return true }},
		{"/health/live", "health-live", "Whether the driver makes progress; 503: it does not", func(h Health) bool { return h.Live }},
		{"/health/ready", "health-ready", "Whether every enabled adapter passes packets; 503: one does not, and the reasons",
			func(h Health) bool { return h.Live && h.Ready }},
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

// Health asks whether the driver works. The error is ErrNotRunning or another one, if it could not be asked.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.Get(ctx, "/health", nil, &h)
	return h, err
}
