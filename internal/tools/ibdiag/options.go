package ibdiag

import (
	"bufio"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Option is an option of a tool, read as commandline.Syntax.Getopt says. Options may follow the arguments.
type Option struct {
	Long     string
	Letter   byte   // 0: none
	Argument string // empty: takes none; otherwise its name in the usage text
	Help     string
	Set      func(value string) error
}

// Flag returns an option without an argument.
func Flag(p *bool, long string, letter byte, help string) Option {
	return Option{Long: long, Letter: letter, Help: help, Set: func(string) error { *p = true; return nil }}
}

// Text returns an option with any argument.
func Text(p *string, long string, letter byte, argument, help string) Option {
	return Option{Long: long, Letter: letter, Argument: argument, Help: help, Set: func(v string) error { *p = v; return nil }}
}

// Number returns an option with a number from low to high, decimal, or hexadecimal after 0x.
func Number[T ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64](p *T, long string, letter byte, argument, help string, low, high uint64) Option {
	return Option{Long: long, Letter: letter, Argument: argument, Help: help, Set: func(v string) error {
		n, err := number(v, low, high)
		*p = T(n)
		return err
	}}
}

// number parses a number like C's strtoul, but refuses what that ignores.
func number(text string, low, high uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("allowed: a number from %d to %d, or hexadecimal after 0x", low, high)
	}
	return n, nil
}

// ParseNumber parses an argument; what describes it in errors.
func ParseNumber(what, text string, low, high uint64) (uint64, error) {
	n, err := number(text, low, high)
	if err != nil {
		return 0, tool.Usagef("%s is %q; %s", what, text, err)
	}
	return n, nil
}

// helpWanted ends a tool that was asked for help or its version, with that text.
type helpWanted string

func (helpWanted) Error() string { return "help" }

// common returns the options that all tools have, except those that t lacks.
func (s *Session) common(t Tool) []Option {
	kind := func(k Kind) func(string) error { return func(string) error { s.Kind = k; return nil } }
	all := []Option{
		{Long: "config", Letter: 'z', Argument: "<config>", Help: "also read settings from this file, in the format of " + configPath(),
			Set: s.configure},
		Text(&s.adapter, "Ca", 'C', "<ca>", "adapter to use"),
		Number(&s.portNum, "Port", 'P', "<port>", "port of the adapter to use", 0, 254),
		{Long: "Direct", Letter: 'D', Help: "the address is a directed route", Set: kind(ByRoute)},
		{Long: "Lid", Letter: 'L', Help: "the address is a LID", Set: kind(ByLID)},
		{Long: "Guid", Letter: 'G', Help: "the address is a port GUID", Set: kind(ByGUID)},
		{Long: "timeout", Letter: 't', Argument: "<ms>", Help: "how long to wait for an answer each time", Set: func(v string) (err error) {
			s.Timing.Timeout, err = milliseconds(v)
			return err
		}},
		Number(&s.SMLID, "sm_port", 's', "<lid>", "LID of the subnet manager", 1, 0xbfff),
		Flag(&s.ShowKeys, "show_keys", 'K', "show keys"),
		Number(&s.MKey, "m_key", 'y', "<key>", "M_Key of the requests", 0, 1<<64-1),
		Flag(&s.Errors, "errors", 'e', "report answers with errors, and missing answers"),
		{Long: "verbose", Letter: 'v', Help: "print more", Set: func(string) error { s.Verbose++; return nil }},
		{Long: "debug", Letter: 'd', Help: "also report errors", Set: func(string) error { s.Errors = true; return nil }},
		{Long: "help", Letter: 'h', Help: "print this text", Set: func(string) error { return helpWanted(s.usage(t)) }},
		{Long: "version", Letter: 'V', Help: "print the version", Set: func(string) error {
			return helpWanted(fmt.Sprintf("%s BUILD VERSION: %s\n", s.Env.Name, Version()))
		}},
	}
	var kept []Option
	for _, o := range all {
		if !strings.Contains(t.Without, string(o.Letter)) {
			kept = append(kept, o)
		}
	}
	return kept
}

// Version returns the version of the tools.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// nameMap returns the option for a file of node names, which most tools have.
func (s *Session) nameMap() Option {
	return Text(&s.nameMapFile, "node-name-map", 0, "<file>", "file with names of nodes")
}

// Serve in Tool.Options stands for the option that makes a tool a server.
var Serve = Option{Long: "Server"}

// WithNames in Tool.Options stands for the option that names nodes by a file.
var WithNames = Option{Long: "node-name-map"}

// options returns those of t followed by the common ones: a tool's own letter hides a common one.
func (s *Session) options(t Tool) []Option {
	var all []Option
	for _, o := range append(append([]Option{}, t.Options...), s.common(t)...) {
		switch {
		case o.Set != nil:
		case o.Long == WithNames.Long:
			o = s.nameMap()
		case o.Long == Serve.Long:
			o = Flag(&s.Serving, Serve.Long, 'S', "answer other nodes")
		}
		all = append(all, o)
	}
	return all
}

// parse parses the command line and returns the arguments that are no options.
func (s *Session) parse(t Tool) (args []string, err error) {
	options := s.options(t)
	syntax := commandline.Syntax{Getopt: true, Arguments: true, Hint: "allowed: " + names(options)}
	for _, o := range options {
		syntax.Options = append(syntax.Options, commandline.Option{Names: o.names(t.OneDash), Argument: o.Argument, Help: o.Help,
			Set: o.Set})
	}
	line, err := syntax.Parse(s.Env.Args)
	return line.Arguments, err
}

// names returns the spellings of o. oneDash: long ones may have a single dash, too.
func (o *Option) names(oneDash bool) (all []string) {
	if o.Long != "" {
		all = append(all, "--"+o.Long)
	}
	if o.Long != "" && oneDash {
		all = append(all, "-"+o.Long)
	}
	if o.Letter != 0 {
		all = append(all, "-"+string(o.Letter))
	}
	return all
}

// spelled returns the spellings of each option, the long one first, without letters that an earlier option
// has.
func spelled(options []Option) [][]string {
	seen := map[byte]bool{}
	all := make([][]string, len(options))
	for i, o := range options {
		alone := len(o.Long) == 1 && o.Long[0] == o.Letter // an option whose long name is its letter
		if o.Long != "" && !alone {
			all[i] = append(all[i], "--"+o.Long)
		}
		if o.Letter != 0 && !seen[o.Letter] {
			seen[o.Letter] = true
			all[i] = append(all[i], "-"+string(o.Letter))
		}
	}
	return all
}

func names(options []Option) string {
	var list []string
	for _, ways := range spelled(options) {
		for _, w := range slices.Backward(ways) {
			list = append(list, w)
		}
	}
	return strings.Join(list, " ")
}

// usage returns the text of --help.
func (s *Session) usage(t Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", strings.TrimRight("usage: "+s.Env.Name+" [options] "+t.Arguments, " "))
	if t.About != "" {
		fmt.Fprintf(&b, "%s\n\n", t.About)
	}
	b.WriteString("Options:\n")
	options := s.options(t)
	ways := spelled(options)
	for i, o := range options {
		word := "  " + strings.Join(ways[i], ", ")
		if o.Argument != "" {
			word += " " + o.Argument
		}
		fmt.Fprintf(&b, "%-24s  %s\n", word, o.Help)
	}
	if len(t.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range t.Examples {
			fmt.Fprintf(&b, "  %s %s\n", s.Env.Name, e)
		}
	}
	return b.String()
}

// configure reads a file of settings.
func (s *Session) configure(file string) error {
	f, err := inputfile.Open(file, inputfile.Text)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if err := s.setting(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("%s: %s is %q; %w", file, name, value, err)
		}
	}
	return lines.Err()
}

// setting handles one line of a file of settings. Settings of other programs are ignored.
func (s *Session) setting(name, value string) error {
	var n uint64
	var err error
	switch name {
	case "CA":
		s.adapter = value
	case "Port":
		n, err = number(value, 0, 254)
		s.portNum = int(n)
	case "timeout":
		s.Timing.Timeout, err = milliseconds(value)
	case "m_key":
		s.MKey, err = number(value, 0, 1<<64-1)
	case "sa_key":
		s.SAKey, err = number(value, 0, 1<<64-1)
	}
	return err
}

func splitCommas(v string) []string {
	return strings.FieldsFunc(strings.ToLower(v), func(r rune) bool { return r == ',' })
}
