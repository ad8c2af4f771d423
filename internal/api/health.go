package api

import (
	"context"
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

// Health asks whether the driver works. The error is ErrNotRunning or another one, if it could not be asked.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.Get(ctx, "/health", nil, &h)
	return h, err
}
