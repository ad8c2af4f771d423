package api

import (
	"context"
	"time"
)

// TraceAction is what is to be done to the trace.
type TraceAction string

// The actions.
const (
	TraceStart   TraceAction = "start"
	TraceStop    TraceAction = "stop"    // writes it, and goes back to the automatic session
	TraceCollect TraceAction = "collect" // writes it, and goes on
)

// TraceRequest starts, stops or writes a trace.
type TraceRequest struct {
	Action    TraceAction       `json:"action" enum:"start,stop,collect"`
	Level     string            `json:"level,omitempty" doc:"Of start: off, error, warning, information (default) or verbose, of all components."`
	Levels    map[string]string `json:"levels,omitempty" doc:"Of start: levels of components that differ: driver, command, loop, transport, cm, link."`
	Megabytes int               `json:"megabytes,omitempty" doc:"Of start: size of the circular buffers, and the most that each file has, 1 to 1024; default 100."`
	File      bool              `json:"file,omitempty" doc:"Of start: the records are kept in a file of that size, which outlives a driver that is killed."`
}

// TraceStatus is a session and what it has recorded.
type TraceStatus struct {
	Session     string            `json:"session"`
	Automatic   bool              `json:"automatic" doc:"The driver has begun it itself."`
	Started     time.Time         `json:"started"`
	Levels      map[string]string `json:"levels"`
	Megabytes   int               `json:"megabytes" doc:"The most that its buffers have."`
	Bytes       int               `json:"bytes" doc:"What they have now."`
	Kept        string            `json:"kept,omitempty" doc:"The file in which the session's records are kept."`
	KeptProblem string            `json:"kept_problem,omitempty" doc:"Why that is not written any more."`
	Records     int               `json:"records"`
	Overwritten uint64            `json:"overwritten" doc:"Records for which there was no room any more."`
	LeftOut     int               `json:"left_out,omitempty" doc:"Of stop and collect: the oldest records, for which the file for Perfetto has no room."`
	Files       []string          `json:"files,omitempty" doc:"Of stop and collect: what was written, for Perfetto and as text."`
}

// Trace starts, stops or writes a trace.
func (c *Client) Trace(ctx context.Context, r TraceRequest) (s TraceStatus, err error) {
	err = c.call(ctx, "POST", "/trace", nil, r, &s)
	return s, err
}

// TraceStatus returns what the trace has recorded.
func (c *Client) TraceStatus(ctx context.Context) (s TraceStatus, err error) {
	err = c.call(ctx, "GET", "/trace", nil, nil, &s)
	return s, err
}
