package api

import (
	"context"

	"github.com/softvpi/softvpi/internal/tuning"
)

// Tuning lists the tuning scenarios and what they changed.
type Tuning struct {
	Processors int               `json:"processors" doc:"Of the machine, from 0 on, as far as scenarios use them."`
	Scenarios  []tuning.Scenario `json:"scenarios"`
	Log        string            `json:"log" doc:"The file of the changes; empty: they are kept in memory only."`
	Changes    []tuning.Entry    `json:"changes" doc:"The newest of them, the oldest first."`
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
