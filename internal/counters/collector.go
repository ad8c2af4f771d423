// Package counters reads the counter sets of the catalogue from the words that adapters count in: snapshots with the
// instances of each set, rates over a reader's own interval, resets, and the forms in which they are shown (typeperf's
// paths and CSV, JSON, Prometheus metrics). Reading costs the data path nothing but the copy of its words; a reset
// writes none of them.
package counters

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipoib"
)

// Adapter is an adapter with its words.
type Adapter struct {
	device.Counters
	// Generation decides which sets and counters the adapter has; 0: MLX5.
	Generation catalogue.Generation
	// Interfaces are its network interfaces: those of IPoIB.
	Interfaces []Interface
}

// Interface is a network interface of an adapter with its words, which begin with 0 when it is made.
type Interface struct {
	Name string // of its connection
	// Made tells interfaces of one name apart that were made one after the other: it only grows.
	Made  uint64
	Speed uint64 // bit/s
	ipoib.Counters
	ipoib.Census
}

// Config is what a Collector reads.
type Config struct {
	// Read returns the adapters with their words now.
	Read func() []Adapter
	// CPUs is how many processors the sets with an instance for each have; 0: one.
	CPUs int
	// Now is the clock, monotonic; nil: time.Now.
	Now func() time.Time
}

// Collector takes snapshots of the counters. Its methods may be called at once from several goroutines.
type Collector struct {
	cfg   Config
	start time.Time

	mu    sync.Mutex
	bases map[baseKey]*base
}

// baseKey says what was set back: a set of an adapter.
type baseKey struct {
	set     string
	adapter uint32
}

// base is what is subtracted from the words of a set, how often it was set, and how often the adapter had been
// restarted by then: a later restart puts what it had counted before in its place.
type base struct {
	words      device.Counters
	interfaces []Interface
	resets     uint64
	restarts   uint64
}

// New returns a Collector.
func New(cfg Config) *Collector {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.CPUs = max(1, cfg.CPUs)
	return &Collector{cfg: cfg, start: cfg.Now(), bases: map[baseKey]*base{}}
}

func (c *Collector) rebase(set string, a *Adapter) {
	k := baseKey{set, a.Adapter}
	b := c.bases[k]
	if b == nil {
		b = &base{}
		c.bases[k] = b
	}
	b.words, b.interfaces, b.restarts = a.Counters, slices.Clone(a.Interfaces), a.Restarts
	b.words.Before = nil
	b.resets++
}

// ResetRequest asks for the counters of a set to be set back.
type ResetRequest struct {
	Set     string `json:"set"`               // printed or short name
	Adapter string `json:"adapter,omitempty"` // by name; empty: all
}

// Reset sets the counters of a set back. Sets that only a restart clears are refused.
func (c *Collector) Reset(q ResetRequest) error {
	if err := CheckReset(q); err != nil {
		return err
	}
	set, _ := catalogue.CounterSetNamed(q.Set)
	found := false
	adapters := c.cfg.Read()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range adapters {
		if q.Adapter == "" || adapters[i].Name == q.Adapter {
			c.rebase(set.Short, &adapters[i])
			found = true
		}
	}
	if !found {
		return &PathError{q.Adapter, "no such adapter", adapterNames(adapters)}
	}
	return nil
}

// CheckReset finds what can be found wrong with a reset without a driver.
func CheckReset(q ResetRequest) error {
	set, ok := catalogue.CounterSetNamed(q.Set)
	if !ok {
		return &PathError{q.Set, "no such counter set", setNames()}
	}
	if set.Reset != catalogue.ResetOnDemand {
		return &PathError{q.Set, "only a restart of the adapter clears this set", resettable()}
	}
	return nil
}

// Sets lists the counter sets with the instances that there are now.
func (c *Collector) Sets() []Set {
	adapters := c.cfg.Read()
	out := make([]Set, 0, len(catalogue.CounterSets))
	for i := range catalogue.CounterSets {
		set := &catalogue.CounterSets[i]
		s := Set{Name: set.Name, Short: set.Short, Aliases: set.Aliases, Description: set.Description, Resettable: set.Reset == catalogue.ResetOnDemand, Instances: []string{}}
		for j := range adapters {
			for _, in := range c.instances(set, &adapters[j]) {
				s.Instances = append(s.Instances, in.name)
			}
		}
		for j := range set.Counters {
			k := &set.Counters[j]
			s.Counters = append(s.Counters, Counter{
				Name: k.Name, Short: k.Short, Kind: kindName(k.Kind), Unit: k.Unit, Description: k.Description, Counted: k.Counted(), Only: k.Only, Generations: generationNames(set, j),
			})
		}
		out = append(out, s)
	}
	return out
}

// Snapshot returns the counters that the paths select, all for none. The error is a *PathError where a path selects
// nothing.
func (c *Collector) Snapshot(paths ...string) (Snapshot, error) {
	sel, err := parsePaths(paths)
	if err != nil {
		return Snapshot{}, err
	}
	adapters := c.cfg.Read()
	now := c.cfg.Now()
	s := Snapshot{Time: now, Uptime: now.Sub(c.start), Instances: []Instance{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range catalogue.CounterSets {
		set := &catalogue.CounterSets[i]
		for j := range adapters {
			for _, in := range c.instances(set, &adapters[j]) {
				if x := c.read(set, &adapters[j], in, sel); len(x.Values) > 0 {
					s.Instances = append(s.Instances, x)
				}
			}
		}
	}
	return s, sel.unused()
}

// instance is one of a set for an adapter.
type instance struct {
	name   string
	labels map[string]string
	of     *Interface // of an interface
}

// instances are those that an adapter has of a set.
func (c *Collector) instances(set *catalogue.CounterSet, a *Adapter) []instance {
	if set.Generations&a.generation() == 0 {
		return nil
	}
	one := func(suffix, label, value string) instance {
		return instance{name: a.Name + suffix, labels: map[string]string{"adapter": a.Name, label: value}}
	}
	var all []instance
	switch set.Instances {
	case "adapter":
		all = append(all, instance{name: a.Name, labels: map[string]string{"adapter": a.Name}})
	case "interface":
		for n := range a.Interfaces {
			x := &a.Interfaces[n]
			all = append(all, instance{x.Name, map[string]string{"adapter": a.Name, "interface": x.Name}, x})
		}
	case "port":
		all = append(all, one("", "port", "1"))
	case "priority":
		for p := range 8 {
			all = append(all, one(", Priority "+strconv.Itoa(p), "priority", strconv.Itoa(p)))
		}
		all = append(all, one(", Untagged", "priority", "untagged"))
	case "cpu":
		for n := range c.cfg.CPUs {
			all = append(all, one(", CPU "+strconv.Itoa(n), "cpu", strconv.Itoa(n)))
		}
		all = append(all, one(", Total", "cpu", "total"))
	}
	return all // adapters have no vPorts and virtual functions yet
}

// read makes the part of an instance that is selected.
func (c *Collector) read(set *catalogue.CounterSet, a *Adapter, in instance, sel selection) Instance {
	x := Instance{Set: set.Short, Name: in.name, Labels: in.labels}
	b := c.bases[baseKey{set.Short, a.Adapter}]
	if b != nil {
		x.Epoch += b.resets
	}
	read := readDevice(set.Short, a, b)
	if in.of != nil {
		x.Epoch += in.of.Made
		read = readInterface(set.Short, in.of, b)
	} else {
		x.Epoch += a.Restarts
	}
	for i := range set.Counters {
		if set.Has(i, a.generation()) && sel.selects(set, in.name, i) {
			v := Value{Counter: set.Counters[i].Short}
			if one := set.Counters[i].Only; one == "" || one == in.labels[set.Instances] {
				v.Raw = raw(&set.Counters[i], read)
			}
			x.Values = append(x.Values, v)
		}
	}
	return x
}

// readTotal tells what a total is now, and what it was when it was set back.
type readTotal func(short string) (now, from uint64)

// readDevice reads totals of an adapter since it was restarted or its set was set back.
func readDevice(set string, a *Adapter, b *base) readTotal {
	from := a.Before
	if b != nil && b.restarts == a.Restarts {
		from = &b.words
	}
	return func(short string) (uint64, uint64) {
		at := words[set][short]
		if from == nil {
			return at(&a.Counters), 0
		}
		return at(&a.Counters), at(from)
	}
}

// readInterface reads totals of an interface since it was made or its set was set back.
func readInterface(set string, x *Interface, b *base) readTotal {
	from := &Interface{}
	if b != nil {
		if n := slices.IndexFunc(b.interfaces, func(o Interface) bool { return o.Made == x.Made }); n >= 0 {
			from = &b.interfaces[n]
		}
	}
	return func(short string) (uint64, uint64) {
		at := interfaceWords[set][short]
		return at(x), at(from)
	}
}

// raw is the value of a counter since it was set back, for a rate the total that it is the rate of; nil where nothing
// counts it.
func raw(k *catalogue.Counter, read readTotal) *uint64 {
	if !k.Counted() {
		return nil
	}
	var v uint64
	for _, short := range totals(k) {
		now, from := read(short)
		v += now
		if !k.Keeps {
			v -= from
		}
	}
	return &v
}

// totals names what a counter is read from.
func totals(k *catalogue.Counter) []string {
	if len(k.Of) > 0 {
		return k.Of
	}
	return []string{k.Short}
}

func (a *Adapter) generation() catalogue.Generation {
	if a.Generation == 0 {
		return catalogue.MLX5
	}
	return a.Generation
}

func setNames() []string {
	var all []string
	for i := range catalogue.CounterSets {
		all = append(all, catalogue.CounterSets[i].Name)
	}
	return all
}

func resettable() []string {
	var all []string
	for i := range catalogue.CounterSets {
		if catalogue.CounterSets[i].Reset == catalogue.ResetOnDemand {
			all = append(all, catalogue.CounterSets[i].Name)
		}
	}
	return all
}

func adapterNames(adapters []Adapter) []string {
	var all []string
	for i := range adapters {
		all = append(all, fmt.Sprintf("%q", adapters[i].Name))
	}
	slices.Sort(all)
	return all
}
