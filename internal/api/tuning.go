package api

import (
	"context"

	"github.com/softvpi/softvpi/internal/tuning"
)

// Tuner is implemented by a driver that can set the keys that suit a kind of traffic, and is then served.
type Tuner interface {
	// Tune runs a tuning scenario, or reverts the last one.
	Tune(tuning.Request) (tuning.Outcome, error)
	// Tuning returns what can be run, and the latest changes.
	Tuning() (Tuning, error)
}

// Tuning lists the tuning scenarios and what they changed.
type Tuning struct {
	Processors int               `json:"processors" doc:"Of the machine, from 0 on, as far as scenarios use them."`
	Scenarios  []tuning.Scenario `json:"scenarios"`
	Log        string            `json:"log" doc:"The file of the changes; empty: they are kept in memory only."`
	Changes    []tuning.Entry    `json:"changes" doc:"The newest of them, the oldest first."`
}

func (s *Server) tuningRoutes(t Tuner) {
	register(s, operation("GET", "/tuning", "tuning", "The tuning scenarios, and what they changed"),
		func(context.Context, *struct{}) (*one[Tuning], error) {
			out, err := t.Tuning()
			return body(out), err
		})
	register(s, operation("POST", "/tuning", "tune", "Run a tuning scenario, or take back what the last one changed"),
		func(_ context.Context, in *struct{ Body tuning.Request }) (*one[tuning.Outcome], error) {
			out, err := t.Tune(in.Body)
			return body(out), err
		})
}

// Tuning returns the tuning scenarios and what they changed.
func (c *Client) Tuning(ctx context.Context) (t Tuning, err error) {
	err = c.call(ctx, "GET", "/tuning", nil, nil, &t)
	return t, err
}

// Tune runs a tuning scenario, or reverts the last one.
func (c *Client) Tune(ctx context.Context, q tuning.Request) (out tuning.Outcome, err error) {
	err = c.call(ctx, "POST", "/tuning", nil, q, &out)
	return out, err
}
