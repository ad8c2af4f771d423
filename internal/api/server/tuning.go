package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tuning"
)

// Tuner is implemented by a driver that can set the keys that suit a kind of traffic, and is then served.
type Tuner interface {
	// Tune runs a tuning scenario, or reverts the last one.
	Tune(tuning.Request) (tuning.Outcome, error)
	// Tuning returns what can be run, and the latest changes.
	Tuning() (api.Tuning, error)
}

func (s *Server) tuningRoutes(t Tuner) {
	register(s, operation("GET", "/tuning", "tuning", "The tuning scenarios, and what they changed"),
		func(context.Context, *struct{}) (*one[api.Tuning], error) {
			out, err := t.Tuning()
			return body(out), err
		})
	register(s, operation("POST", "/tuning", "tune", "Run a tuning scenario, or take back what the last one changed"),
		func(_ context.Context, in *struct{ Body tuning.Request }) (*one[tuning.Outcome], error) {
			out, err := t.Tune(in.Body)
			return body(out), err
		})
}
