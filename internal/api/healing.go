package api

import (
	"context"
	"fmt"
	"io"
)

// HealingStatus is what self-healing has seen and done at an adapter.
type HealingStatus struct {
	Every    int    `json:"check_seconds"`      // between two checks
	Looks    int    `json:"checks_until_stuck"` // checks without progress until a part counts as stuck
	Restarts uint64 `json:"restarts"`
	// Stopped: the adapter is off because restarts have not helped. It is until somebody enables or restarts it.
	Stopped bool           `json:"stopped"`
	Sensors []SensorStatus `json:"sensors"`
}

// SensorStatus is a sensor of an adapter.
type SensorStatus struct {
	Name   string `json:"name"`
	Mask   string `json:"mask"` // its bit in SHMPResetActiveSensorsMask and SHSensorsDumpMask: 0x00000008
	Active bool   `json:"active"`
	Dump   bool   `json:"dump"`
	Error  bool   `json:"error"` // found one since the last restart
	Count  uint64 `json:"count"` // errors found
	Within int    `json:"detection_seconds"`
}

// FaultRequest makes something go wrong in an adapter.
type FaultRequest struct {
	Adapter string `json:"-"` // by name
	Fault   string `json:"fault" enum:"wire,completions,host,receive,send,descriptor,events,command,loop,panic,turn,crash,request"`
}

// InjectFault makes something go wrong in an adapter.
func (c *Client) InjectFault(ctx context.Context, q FaultRequest) error {
	return c.call(ctx, "POST", adapterURL(q.Adapter, "/faults"), nil, q, nil)
}

// writeStatus prints what self-healing has done, if anything.
func (h *HealingStatus) writeStatus(w io.Writer) {
	if h == nil {
		return
	}
	var errors uint64
	for _, s := range h.Sensors {
		errors += s.Count
	}
	if errors == 0 && h.Restarts == 0 && !h.Stopped {
		return
	}
	fmt.Fprintf(w, "  self-healing: %d errors found, %d restarts%s\n", errors, h.Restarts,
		map[bool]string{true: "; stopped, since restarts do not help"}[h.Stopped])
}
