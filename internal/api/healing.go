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

// FaultSource is implemented by a driver in which things can be made to go wrong, and is then served.
type FaultSource interface {
	// InjectFault does so. It is refused unless the configuration allows it.
	InjectFault(FaultRequest) error
}

func (s *Server) faultRoutes(d FaultSource) {
	register(s, operation("POST", "/adapters/{name}/faults", "inject-fault",
		"Make something go wrong in an adapter, to see that it is found; refused unless the configuration has fault_injection"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body FaultRequest
		}) (*struct{}, error) {
			in.Body.Adapter = in.Name
			return nil, d.InjectFault(in.Body)
		})
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
