package config

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/trace"
)

// Trace is the trace that the driver records from its start, while nobody has started another.
type Trace struct {
	// Level is that of all components: off, error, warning, information or verbose; empty: information.
	Level string `json:"level,omitempty"`
	// Levels are those of components that differ.
	Levels map[string]string `json:"levels,omitempty"`
	// Megabytes is the size of its buffers, in memory, and the most that each of its files has; 0: 8, or 100 if File.
	Megabytes int `json:"megabytes,omitempty"`
	// File keeps its records in a file of that size, which outlives a driver that is killed.
	File bool `json:"file,omitempty"`
}

// defaultTrace is less than the 100 MB of the manual's, whose trace is in a file: a driver in a container has not that much.
const defaultTrace = 8

// complete checks the trace.
func (c *Trace) complete() error {
	if c == nil {
		return nil
	}
	if least, most := trace.LeastBytes>>20, trace.MostBytes>>20; c.Megabytes != 0 && (c.Megabytes < least || c.Megabytes > most) {
		return api.Wrong("trace.megabytes", strconv.Itoa(c.Megabytes), fmt.Sprintf("%d to %d", least, most))
	}
	_, err := trace.ParseLevels(c.Level, c.Levels)
	var wrong *trace.LevelError
	if errors.As(err, &wrong) {
		return api.Wrong("trace."+wrong.Field(), strconv.Quote(wrong.Value), wrong.Allowed)
	}
	return err
}

// Session returns what the trace records.
func (c *Trace) Session() trace.Config {
	if c == nil {
		c = &Trace{}
	}
	levels, _ := trace.ParseLevels(c.Level, c.Levels) // has been checked
	megabytes := c.Megabytes
	switch {
	case megabytes == 0 && c.File:
		megabytes = trace.DefaultBytes >> 20
	case megabytes == 0:
		megabytes = defaultTrace
	}
	return trace.Config{Levels: levels, Bytes: megabytes << 20, File: c.File}
}
