package scenario

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/simulate/workload"
)

// Limits of a scenario.
const (
	mostText    = 1 << 20
	mostSamples = 100_000
	// mostValues is how many lengths of queues all samples may have together.
	mostValues = 1 << 26

	longest         = 100 * time.Second
	defaultDuration = 10 * time.Millisecond
	defaultSamples  = 200
)

// Scenario is a simulation, complete and checked.
type Scenario struct {
	File        string
	Name        string
	Description string
	Graph       *Graph
	// Switches are the settings of each node of the graph that is a switch, NICs those of each that is a host.
	Switches []*Switch
	NICs     []*NIC
	// Ports are how ports of switches differ from the others.
	Ports []Port
	// Learning is that switches learn where MACs are, and have VLANs. Otherwise they have routes.
	Learning bool
	Flows    *workload.Flows
	Faults   []Fault
	Seed     uint64
	// Duration is how much virtual time passes at most; a run ends earlier if all flows are complete.
	Duration time.Duration
	// Sample is the time from one sample of a time series to the next.
	Sample time.Duration
	// Lean leaves the verbs out: reaction points and packets alone.
	Lean bool
	// Known are the paths of all fields.
	Known []string
}

// MTU returns the payload of a flow's packets at most: what both of its hosts can do.
func (s *Scenario) MTU(f *workload.Flow) int {
	return min(s.NICs[s.Graph.Hosts[f.From]].MTU, s.NICs[s.Graph.Hosts[f.To]].MTU)
}

// Set is a value that takes the place of that of a field.
type Set struct {
	Path string // of the field, with dots
	Text string
	By   string // what the user wrote it with, for errors
}

// Load reads a scenario from a file, with some values in the place of those there. The error is an *Error.
func Load(file string, values ...Set) (*Scenario, error) {
	f, err := inputfile.Open(file, mostText)
	if err != nil {
		return nil, unreadable(file, err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, unreadable(file, err)
	}
	return Read(file, text, values...)
}

func unreadable(file string, err error) error {
	reason := err.Error()
	var path *fs.PathError
	if p, ok := err.(*fs.PathError); ok {
		path = p
		reason = path.Err.Error()
	}
	return &Error{File: file, Value: "not read: " + reason, Allowed: "a file with a scenario"}
}

// Read reads a scenario from the text of a file. Files that it names are relative to the file's directory.
func Read(file string, text []byte, values ...Set) (*Scenario, error) {
	root, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if err := root.set(v.Path, v.Text, v.By); err != nil {
			return nil, err
		}
	}
	r := &reading{file: file, known: map[string]bool{}}
	s := r.scenario(r.root(root))
	if r.err != nil {
		return nil, r.err
	}
	for name := range r.known {
		s.Known = append(s.Known, name)
	}
	slices.Sort(s.Known)
	return s, nil
}

func (r *reading) scenario(o *object) *Scenario {
	s := &Scenario{File: r.file}
	s.Name = o.text("name", strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file)))
	s.Description = o.text("description", "")
	s.Seed = uint64(o.int("seed", 1, 0, 1<<53))
	s.Lean = o.bool("lean")
	s.Duration = o.time("duration", defaultDuration, time.Microsecond, longest)
	s.Sample = o.time("sample", max(s.Duration/defaultSamples, 1), 100*time.Nanosecond, longest)
	t := o.object("topology")
	s.Graph = r.topology(t)
	if r.err != nil {
		return s
	}
	s.switches(o)
	s.nics(o)
	s.Ports = r.ports(o, s)
	s.Learning = o.bool("learning")
	if r.err == nil {
		s.Flows = r.workload(o, s)
		s.Faults = r.faults(o, s)
	}
	if r.err == nil {
		r.learning(o, s)
	}
	o.end()
	if n := s.Duration / s.Sample; n > mostSamples || int64(n)*int64(2*len(s.Graph.Links)) > mostValues {
		r.fail(o.where("sample"), "sample", s.Sample.String(), "longer: there are too many samples of too many ports")
	}
	return s
}

// path returns the place of a file that the scenario names.
func (r *reading) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.file), name)
}

// Resolve returns the path of the field that a short name means; false: there is none, or several, which all are.
func (s *Scenario) Resolve(name string) (path string, all []string, ok bool) {
	for _, k := range s.Known {
		last := k[strings.LastIndexByte(k, '.')+1:]
		if k == name {
			return k, nil, true
		}
		if strings.EqualFold(last, name) {
			all = append(all, k)
		}
	}
	if len(all) == 1 {
		return all[0], nil, true
	}
	return "", all, false
}
