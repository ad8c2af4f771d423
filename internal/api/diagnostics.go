package api

import (
	"context"
	"time"
)

// Resources are the objects that an adapter has, and how many are in use.
type Resources struct {
	PKeys   []uint16   `json:"pkeys" doc:"The partition keys by their index."`
	Objects []Resource `json:"objects"`
}

// Resource is a kind of object.
type Resource struct {
	Name string `json:"name"`
	Used int    `json:"used"`
	Max  uint64 `json:"max"`
}

// CallStats are the statistics of one kind of call.
type CallStats struct {
	Name    string        `json:"name"`
	Count   uint64        `json:"count"`
	Failed  uint64        `json:"failed"`
	Total   time.Duration `json:"total_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// DumpKind is a kind of dump.
type DumpKind string

// The kinds of dumps.
const (
	StateDump DumpKind = "state"       // the files of mstdump
	DumpMeNow DumpKind = "dump-me-now" // a folder of its own
)

// Dump describes a dump that was written.
type Dump struct {
	Kind      DumpKind `json:"kind"`
	Directory string   `json:"directory" doc:"Where the files are; of dump-me-now its own folder."`
	Number    int      `json:"number" doc:"In the names of the files of a state dump."`
	Files     []string `json:"files"`
}

// DumpRequest asks for a dump.
type DumpRequest struct {
	Kind DumpKind `json:"kind" enum:"state,dump-me-now"`
	// NoRegisters leaves the register space out of a dump-me-now, and QP adds a queue pair with what it refers to.
	NoRegisters bool    `json:"no_registers,omitempty" doc:"Of dump-me-now: without the register space."`
	QP          *uint32 `json:"qp,omitempty" doc:"Of dump-me-now: the number of a queue pair whose resource dump is added."`
}

// ResetAdapter resets an adapter.
func (c *Client) ResetAdapter(ctx context.Context, name string) error {
	return c.call(ctx, "POST", adapterURL(name, "/reset"), nil, nil, nil)
}

// Resources returns the objects of an adapter and its partition keys.
func (c *Client) Resources(ctx context.Context, adapter string) (r Resources, err error) {
	err = c.call(ctx, "GET", adapterURL(adapter, "/resources"), nil, nil, &r)
	return r, err
}

// Commands returns statistics of what programs requested from an adapter.
func (c *Client) Commands(ctx context.Context, adapter string) (list []CallStats, err error) {
	err = c.call(ctx, "GET", adapterURL(adapter, "/commands"), nil, nil, &list)
	return list, err
}

// Requests returns statistics of the management requests about an adapter.
func (c *Client) Requests(ctx context.Context, adapter string) (list []CallStats, err error) {
	err = c.call(ctx, "GET", adapterURL(adapter, "/requests"), nil, nil, &list)
	return list, err
}

// Dump writes the state of an adapter to files on the driver's machine.
func (c *Client) Dump(ctx context.Context, adapter string, q DumpRequest) (d Dump, err error) {
	err = c.call(ctx, "POST", adapterURL(adapter, "/dumps"), nil, q, &d)
	return d, err
}
