package scenario

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/simulate/workload"
)

const (
	mostBytes = 1 << 40
	mostParts = 64
	// DefaultPriority is that of flows.
	DefaultPriority = 3
)

// workload reads what the hosts send, of one pattern or several.
func (r *reading) workload(o *object, s *Scenario) *workload.Flows {
	f := new(workload.Flows)
	parts := o.objects("workload")
	if len(parts) == 0 && !o.has("workload") {
		parts = []*object{{r: r, path: "workload", at: o.at}}
	}
	if r.err == nil && (len(parts) == 0 || len(parts) > mostParts) {
		r.fail(o.where("workload"), "workload", fmt.Sprintf("%d patterns", len(parts)), fmt.Sprintf("1 to %d", mostParts))
		return f
	}
	for i, x := range parts {
		r.pattern(x, s, f, rand.New(rand.NewPCG(s.Seed, uint64(i)+1)))
		x.end()
		if f.Error != nil {
			r.fail(x.at, x.path, f.Error.Error(), fmt.Sprintf("%d flows", workload.Most))
		}
		if r.err != nil {
			return f
		}
	}
	if len(f.All) == 0 {
		r.fail(o.where("workload"), "workload", "without a flow", "flows that start before the duration ends")
	}
	f.Settle()
	return f
}

// pattern adds the flows of a pattern.
func (r *reading) pattern(o *object, s *Scenario, f *workload.Flows, random *rand.Rand) {
	kind := o.choice("kind", "incast", "permutation", "shift", "all-to-all", "ring-allreduce", "tree-allreduce", "poisson", "csv")
	b := workload.Base{Start: o.time("start", 0, 0, longest), Priority: uint8(o.int("priority", DefaultPriority, 0, 7))}
	b.Hosts = r.hosts(o, s.Graph)
	if r.err != nil {
		return
	}
	switch kind {
	case "incast":
		b.Bytes = o.bytes("size", 0, 0, mostBytes)
		to := s.Graph.Nodes[s.Graph.Hosts[len(s.Graph.Hosts)-1]].Name
		i := s.Graph.Find(o.text("to", to))
		if i < 0 || !s.Graph.Nodes[i].Host {
			r.wrong(o.where("to"), o.field("to"), "a host of the topology: "+s.Graph.names(true))
			return
		}
		f.Incast(b, s.Graph.Nodes[i].Number, o.time("apart", 0, 0, longest))
	case "permutation":
		b.Bytes = o.bytes("size", 0, 0, mostBytes)
		f.Permutation(b, random)
	case "shift":
		b.Bytes = o.bytes("size", 0, 0, mostBytes)
		f.Shift(b, o.int("by", 1, 1, mostHosts))
	case "all-to-all":
		b.Bytes = o.bytes("size", 1e6, 0, mostBytes)
		f.AllToAll(b)
	case "ring-allreduce":
		b.Bytes = o.bytes("size", 1e6, 1, mostBytes)
		f.Ring(b)
	case "tree-allreduce":
		b.Bytes = o.bytes("size", 1e6, 1, mostBytes)
		f.Tree(b)
	case "poisson":
		r.poisson(o, s, f, b, random)
	case "csv":
		r.csv(o, s, f, b)
	}
}

// hosts reads which hosts take part; all if none are named.
func (r *reading) hosts(o *object, g *Graph) (all []int) {
	names := o.names("hosts")
	if !o.has("hosts") {
		for i := range g.Hosts {
			all = append(all, i)
		}
		return all
	}
	seen := map[int]bool{}
	for i, name := range names {
		n := g.Find(name)
		if n < 0 || !g.Nodes[n].Host || seen[n] {
			r.fail(o.where("hosts"), fmt.Sprintf("%s.%d", o.field("hosts"), i), strconv.Quote(name),
				"hosts of the topology, each once: "+g.names(true))
			return nil
		}
		seen[n] = true
		all = append(all, g.Nodes[n].Number)
	}
	if len(all) < 2 && r.err == nil {
		r.fail(o.where("hosts"), o.field("hosts"), fmt.Sprintf("%d hosts", len(all)), "2 or more")
	}
	return all
}

func (r *reading) poisson(o *object, s *Scenario, f *workload.Flows, b workload.Base, random *rand.Rand) {
	load := o.share("load", 0.5, 0.001, 2)
	until := o.time("until", s.Duration, 0, longest)
	size := o.bytes("size", 0, 0, mostBytes)
	name := o.text("sizes", "")
	sizes := workload.Fixed(max(size, 1))
	switch {
	case (name == "") == (size == 0):
		r.fail(o.at, o.path, "with both or neither of size and sizes", "a size, or a file of sizes")
		return
	case name != "":
		var err error
		if sizes, err = readSizes(r.path(name)); err != nil {
			r.inFile(o, "sizes", name, err)
			return
		}
	}
	rate := func(host int) float64 {
		links := s.Graph.Nodes[s.Graph.Hosts[host]].Links
		return float64(len(links)) * float64(s.Graph.Links[links[0]].Rate)
	}
	f.Poisson(b, sizes, load, rate, until, random)
}

func readSizes(name string) (*workload.Sizes, error) {
	file, err := inputfile.Open(name, inputfile.Text)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return workload.ReadSizes(file)
}

// inFile notes an error in a file that a field names.
func (r *reading) inFile(o *object, field, name string, err error) {
	var line *workload.LineError
	if errors.As(err, &line) && r.err == nil {
		r.err = &Error{File: r.path(name), Line: line.Line, Field: "the line", Value: line.Value, Allowed: line.Allowed}
		return
	}
	r.fail(o.where(field), o.field(field), err.Error(), "a file that can be read")
}

// csv reads flows from lines of a file: from, to, bytes, start, and maybe priority.
func (r *reading) csv(o *object, s *Scenario, f *workload.Flows, b workload.Base) {
	name := o.text("file", "")
	if name == "" {
		r.fail(o.where("file"), o.field("file"), `""`, "a file with a flow in each line")
		return
	}
	file, err := inputfile.Open(r.path(name), inputfile.Text)
	if err != nil {
		r.inFile(o, "file", name, err)
		return
	}
	defer file.Close()
	lines := csv.NewReader(file)
	lines.Comment, lines.FieldsPerRecord, lines.TrimLeadingSpace, lines.ReuseRecord = '#', -1, true, true
	numbers := map[string]int{}
	for _, h := range s.Graph.Hosts {
		numbers[s.Graph.Nodes[h].Name] = s.Graph.Nodes[h].Number
	}
	for first := true; f.Error == nil; first = false {
		words, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		var x workload.Flow
		line := 0
		if err == nil {
			line, _ = lines.FieldPos(0)
			if first && words[0] == "from" {
				continue
			}
			x, err = csvFlow(words, numbers, b)
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			line = bad.Line
		}
		if err != nil {
			r.inFile(o, "file", name, &workload.LineError{Line: line, Value: strconv.Quote(strings.Join(words, ",")) + " (" + err.Error() + ")",
				Allowed: "from,to,size,start[,priority]: names of hosts, a size such as 10KB, a time such as 5us"})
			return
		}
		f.Add(x)
	}
}

func csvFlow(words []string, hosts map[string]int, b workload.Base) (x workload.Flow, err error) {
	if len(words) != 4 && len(words) != 5 {
		return x, fmt.Errorf("%d values", len(words))
	}
	from, ok := hosts[words[0]]
	to, ok2 := hosts[words[1]]
	if !ok || !ok2 || from == to {
		return x, errors.New("not two hosts")
	}
	size, ok := parseQuantity(words[2], bytesUnits, 1)
	if !ok || !(size >= 0 && size <= mostBytes) {
		return x, errors.New("no size")
	}
	start, ok := parseQuantity(words[3], timeUnits, 1e3)
	if !ok || !(start >= 0 && start <= float64(longest)) {
		return x, errors.New("no time")
	}
	priority := int(b.Priority)
	if len(words) == 5 {
		if priority, err = strconv.Atoi(words[4]); err != nil || priority < 0 || priority > 7 {
			return x, errors.New("no priority")
		}
	}
	return workload.Flow{From: int32(from), To: int32(to), Bytes: int64(size), Start: clock.Time(b.Start).Add(time.Duration(start)),
		Priority: uint8(priority)}, nil
}
