package counters

import (
	"time"
)

// Snapshot is the state of the counters at one moment.
type Snapshot struct {
	Time time.Time `json:"time"`
	// Uptime is the time since the driver started to count, by a clock that is never adjusted; it measures
	// intervals.
	Uptime    time.Duration `json:"uptime_ns"`
	Instances []Instance    `json:"instances"`
}

// Instance is one instance of a counter set.
type Instance struct {
	Set    string            `json:"set"`      // short name
	Name   string            `json:"instance"` // "Ethernet 1", "Ethernet 1, Priority 3"
	Labels map[string]string `json:"labels"`   // adapter, and priority, cpu or port
	// Epoch grows when the set is reset; values of different epochs cannot be compared.
	Epoch  uint64  `json:"epoch"`
	Values []Value `json:"values"`
}

// Value is a counter in a snapshot.
type Value struct {
	Counter string `json:"counter"` // short name
	// Raw is the value, for a rate that of the underlying total; nil if nothing counts it.
	Raw *uint64 `json:"raw"`
}

// Set describes a counter set.
type Set struct {
	Name        string    `json:"name"`
	Short       string    `json:"short"`
	Aliases     []string  `json:"aliases,omitempty"`
	Description string    `json:"description"`
	Resettable  bool      `json:"resettable"` // even without a restart
	Instances   []string  `json:"instances"`
	Counters    []Counter `json:"counters"`
}

// Counter describes a counter of a set.
type Counter struct {
	Name        string   `json:"name"`
	Short       string   `json:"short"`
	Kind        string   `json:"kind"` // total, rate, level, ratio
	Unit        string   `json:"unit"`
	Description string   `json:"description"`
	Counted     bool     `json:"counted"`     // false: it has no value, because what it counts is not implemented
	Generations []string `json:"generations"` // mlx5, mlx4
}
