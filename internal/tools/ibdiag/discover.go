package ibdiag

import (
	"errors"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
)

// Scan holds the options of tools that walk a whole fabric.
type Scan struct {
	Cache       string // file to read instead of walking
	Outstanding int
}

// Options returns the options of a walk and of a cache to use instead.
func (c *Scan) Options() []Option {
	return []Option{
		Text(&c.Cache, "load-cache", 0, "<file>", "read the fabric from a cache of ibnetdiscover instead of walking it"),
		Number(&c.Outstanding, "outstanding_smps", 'o', "<val>", "requests in flight at once", 1, 4096),
	}
}

// Fabric walks the fabric, or reads the cache. It warns of what did not answer.
func (s *Session) Fabric(c Scan, o discovery.Options) (*discovery.Fabric, error) {
	if c.Cache != "" {
		return LoadCache(c.Cache)
	}
	if s.Port == nil {
		if err := s.open(); err != nil {
			return nil, err
		}
		defer s.close()
	}
	f, faults, err := discovery.Discover(s.Context, s.Port, o, discovery.Asking{Timing: s.Timing, MKey: s.MKey, Outstanding: c.Outstanding})
	s.tell(faults)
	if err != nil && s.Context.Err() == nil {
		return nil, Failf("discover failed: %s", err)
	}
	return f, err
}

func (s *Session) close() {
	s.Port.Close()
	s.Port = nil
}

// maxFaults is how many faults of a walk are reported individually.
const maxFaults = 100

func (s *Session) tell(faults []*discovery.Fault) {
	for i, f := range faults {
		if i == maxFaults {
			s.Warnf("discover", "%d further requests had no good answer", len(faults)-i)
			return
		}
		r := DirectRoute(f.Path[1:]...)
		var status *umad.StatusError
		switch {
		case errors.As(f.Err, &status):
			s.Warnf("discover", "mad (%s Attr 0x%x:%d) bad status 0x%x", r, f.Attribute, f.Modifier, status.Status)
		default:
			s.Warnf("discover", "umad (%s Attr 0x%x:%d) %s", r, f.Attribute, f.Modifier, f.Err)
		}
	}
}

// LoadCache reads a cache written by ibnetdiscover. The error is a *tool.UsageError.
func LoadCache(file string) (*discovery.Fabric, error) {
	in, err := inputfile.Open(file, inputfile.Net)
	if err != nil {
		return nil, tool.Usagef("loading cached fabric failed: %s", err)
	}
	defer in.Close()
	f, err := discovery.ReadCache(in)
	if err != nil {
		return nil, tool.Usagef("loading cached fabric failed: %s: %s", file, err)
	}
	return f, nil
}

// Keys returns an option that takes a comma-separated list of names.
func Keys(p *map[string]bool, long, help string, allowed ...string) Option {
	return Option{Long: long, Argument: "<key(s)>", Help: help, Set: func(v string) error {
		*p = map[string]bool{}
		for _, k := range splitCommas(v) {
			known := false
			for _, a := range allowed {
				known = known || a == k
			}
			if !known {
				return tool.Usagef("--%s has %q; allowed: %v, with commas", long, k, allowed)
			}
			(*p)[k] = true
		}
		return nil
	}}
}
