package main

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/softvpi/softvpi/internal/os/journal"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// logLevels are the names of levels.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logger returns where the driver logs to, as --log and --verbose say.
func (c upCmd) logger(w io.Writer) (*slog.Logger, error) {
	level, format := slog.LevelWarn, "text"
	switch {
	case c.Verbose && c.Log != "":
		return nil, tool.Usagef("--verbose and --log %s; allowed: one of both (--verbose is --log debug)", c.Log)
	case c.Verbose:
		level = slog.LevelDebug
	case c.Log != "":
		name, rest, given := strings.Cut(c.Log, ",")
		known := false
		if level, known = logLevels[name]; !known {
			return nil, tool.Usagef("--log: the level is %q; allowed: debug, info, warn, error", name)
		}
		if given {
			format = rest
		}
	}
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(journal.For(w, os.Getenv("JOURNAL_STREAM"), journal.Socket, level, slog.NewTextHandler(w, o))), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, tool.Usagef("--log: the format is %q; allowed: text, json", format)
}
