// Package collector reads the counter sets of the catalogue from the words in which adapters count: snapshots with the instances of each
// set (package counters), resets, and Prometheus metrics. Reading costs the data path only a copy of its words; a reset does not write
// them.
package collector

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/port"
)

// Adapter is an adapter with its words.
type Adapter struct {
	device.Counters
	// Generation determines which sets and counters the adapter has; 0: MLX5.
	Generation catalogue.Generation
	// Device is the name of the device whose port number Port the adapter is; empty: the adapter's own. Port 0
	// means 1.
	Device string
	Port   int
	// Interfaces are its network interfaces: IPoIB's, or that of its Ethernet function.
	Interfaces []Interface
	// Functions are the virtual functions at its port.
	Functions []Function
	// Teams are those that it stands on.
	Teams []Team
	// VLANs are the VLAN interfaces at its port.
	VLANs []VLAN
	// Queues are the words of its receive queues for virtual ports, by the short names of the counters; nil: it has none.
	Queues map[string]uint64
	// Overlay are the words of the overlay of its port, by the short names of the counters; nil: no function there is in a virtual subnet.
	Overlay map[string]uint64
}

// Interface is a network interface of an adapter with its words, which are 0 when it is created.
type Interface struct {
	Name string // name of its connection
	// Made only grows, and so distinguishes successive interfaces of one name.
	Made  uint64
	Speed uint64 // bit/s
	ipoib.Counters
	ipoib.Census
	// Ethernet are those of an Ethernet function; nil: it is IPoIB's.
	Ethernet *device.EthernetStatus
}

// Config says what a Collector reads.
type Config struct {
	// Read returns the adapters with their current words.
	Read func() []Adapter
	// CPUs is how many processors the per-processor sets have; 0: one.
	CPUs int
	// Watched is told of adapters of which a set that counts only while somebody looks is read by its name; it may be nil.
	Watched func(adapter uint32)
	// Driver returns values that belong to no adapter, for metrics; nil: there are none.
	Driver func() []DriverValue
	// Identities returns what the adapters are, for metrics; nil: they are not told.
	Identities func() []Identity
	// Now is the clock, monotonic; nil: time.Now.
	Now func() time.Time
}

// Collector takes snapshots of the counters. Its methods may be called concurrently.
type Collector struct {
	cfg   Config
	start time.Time

	mu    sync.Mutex
	bases map[baseKey]*base
}

// baseKey identifies what was reset: a set of an adapter.
type baseKey struct {
	set     string
	adapter uint32
}

// base is what to subtract from the words of a set, how often it was reset, and how often the adapter had
// been restarted by then: after a later restart, the counts from before the restart are subtracted
// instead.
type base struct {
	words      device.Counters
	interfaces []Interface
	named      map[string]map[string]uint64 // by the names of instances that count by themselves
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

func (c *Collector) rebase(set *catalogue.CounterSet, a *Adapter) {
	k := baseKey{set.Short, a.Adapter}
	b := c.bases[k]
	if b == nil {
		b = &base{}
		c.bases[k] = b
	}
	b.words, b.interfaces, b.restarts = a.Counters, slices.Clone(a.Interfaces), a.Restarts
	b.words.Before, b.named = nil, map[string]map[string]uint64{}
	for _, x := range a.named(set.Instances) {
		b.named[x.name] = x.values
	}
	b.resets++
}

// Reset resets the counters of a set. Sets that only a restart clears are refused.
func (c *Collector) Reset(q counters.ResetRequest) error {
	if err := counters.CheckReset(q); err != nil {
		return err
	}
	set, _ := catalogue.CounterSetNamed(q.Set)
	found := false
	adapters := c.cfg.Read()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range adapters {
		if q.Adapter == "" || adapters[i].Name == q.Adapter {
			c.rebase(set, &adapters[i])
			found = true
		}
	}
	if !found {
		return &counters.PathError{Path: q.Adapter, Problem: "no such adapter", Allowed: adapterNames(adapters)}
	}
	return nil
}

// Snapshot returns the counters that the paths select, or all without paths. The error is a *PathError for
// a path that selects nothing.
func (c *Collector) Snapshot(paths ...string) (counters.Snapshot, error) {
	sel, err := counters.ParsePaths(paths)
	if err != nil {
		return counters.Snapshot{}, err
	}
	adapters := c.cfg.Read()
	if c.cfg.Watched != nil && sel.Names("adapter_rss") {
		for i := range adapters {
			c.cfg.Watched(adapters[i].Adapter)
		}
	}
	now := c.cfg.Now()
	s := counters.Snapshot{Time: now, Uptime: now.Sub(c.start), Instances: []counters.Instance{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range catalogue.CounterSets() {
		set := &catalogue.CounterSets()[i]
		for j := range adapters {
			for _, in := range c.instances(set, adapters, j) {
				if x := c.read(set, &adapters[j], in, sel); len(x.Values) > 0 {
					s.Instances = append(s.Instances, x)
				}
			}
		}
	}
	return s, sel.Unused()
}

// instance is an instance of a set for an adapter.
type instance struct {
	name   string
	labels map[string]string
	of     *Interface        // for instances that are interfaces
	values map[string]uint64 // for instances that count by themselves
	part   int               // of the Ethernet function or the port (port.Untagged: no priority), for instances that are parts of it
	device []*Adapter        // the ports of the adapter's device, itself included
}

// instances returns the instances of a set for adapter number n; those of a device are its first port's.
func (c *Collector) instances(set *catalogue.CounterSet, adapters []Adapter, n int) []instance {
	a := &adapters[n]
	device := deviceOf(adapters, a)
	if set.Generations&a.generation() == 0 {
		return nil
	}
	one := func(suffix, label, value string) instance {
		return instance{name: a.Name + suffix, labels: map[string]string{"adapter": a.Name, label: value}, device: device}
	}
	var all []instance
	switch set.Instances {
	case "adapter":
		all = append(all, instance{name: a.Name, labels: map[string]string{"adapter": a.Name}, device: device})
	case "device":
		if device[0] == a {
			all = append(all, instance{name: a.device(), labels: map[string]string{"device": a.device()}, device: device})
		}
	case "interface":
		for n := range a.Interfaces {
			x := &a.Interfaces[n]
			if x.words(set.Short) == nil {
				continue
			}
			all = append(all, instance{name: x.Name, labels: map[string]string{"adapter": a.Name, "interface": x.Name}, of: x, device: device})
		}
	case "function", "team", "member", "vlan", "queues", "overlay":
		for _, x := range a.named(set.Instances) {
			x.device = device
			all = append(all, x)
		}
	case "port":
		all = append(all, one("", "port", strconv.Itoa(max(a.Port, 1))))
	case "priority":
		for p := range port.Untagged {
			all = append(all, one(", Priority "+strconv.Itoa(p), "priority", strconv.Itoa(p)))
			all[p].part = p
		}
		all = append(all, one(", Untagged", "priority", "untagged"))
		all[port.Untagged].part = port.Untagged
	case "cpu": // those of RSS monitoring
		if a.Ethernet == nil || a.Ethernet.Config.RssMonitoringEnabled == 0 {
			return nil
		}
		for n := range c.cfg.CPUs {
			all = append(all, one(", CPU "+strconv.Itoa(n), "cpu", strconv.Itoa(n)))
			all[n].part = n
		}
		all = append(all, one(", Total", "cpu", "total"))
		all[c.cfg.CPUs].part = total
	case "queue":
		if a.Ethernet == nil {
			return nil
		}
		for n := range a.Ethernet.Processors {
			all = append(all, one(", Queue "+strconv.Itoa(n), "queue", strconv.Itoa(n)))
			all[n].part = n
		}
	}
	return all // adapters do not have vPorts yet
}

// read returns the selected part of an instance.
func (c *Collector) read(set *catalogue.CounterSet, a *Adapter, in instance, sel counters.Selection) counters.Instance {
	x := counters.Instance{Set: set.Short, Name: in.name, Labels: in.labels}
	b := c.bases[baseKey{set.Short, a.Adapter}]
	read, whole := readAdapter(set.Short, a, b), c.readDevice(set.Short, in.device)
	if b != nil {
		x.Epoch += b.resets
	}
	switch {
	case in.of != nil:
		x.Epoch += in.of.Made
		read = readInterface(set.Short, in.of, b)
	case in.values != nil:
		x.Epoch += a.Restarts
		read = readNamed(&in, b)
	case set.Instances == "priority":
		x.Epoch += a.Restarts
		read = readPriority(a, b, in.part)
	case partWords()[set.Short] != nil:
		x.Epoch += a.Restarts
		read = readPart(set.Short, a, b, in.part)
	case set.Instances == "device":
		read = whole
		for _, port := range in.device {
			x.Epoch += port.Restarts
		}
	default:
		x.Epoch += a.Restarts
	}
	for i := range set.Counters {
		if set.Has(i, a.generation()) && sel.Selects(set, in.name, i) {
			v := counters.Value{Counter: set.Counters[i].Short}
			from := read
			if set.Counters[i].Whole {
				from = whole
			}
			v.Raw = raw(&set.Counters[i], from)
			x.Values = append(x.Values, v)
		}
	}
	return x
}

// device returns the name of the adapter's device.
func (a *Adapter) device() string {
	if a.Device == "" {
		return a.Name
	}
	return a.Device
}

// deviceOf returns the ports of an adapter's device.
func deviceOf(adapters []Adapter, a *Adapter) (ports []*Adapter) {
	for i := range adapters {
		if b := &adapters[i]; b == a || a.Device != "" && b.Device == a.Device {
			ports = append(ports, b)
		}
	}
	return ports
}

func (a *Adapter) generation() catalogue.Generation {
	if a.Generation == 0 {
		return catalogue.MLX5
	}
	return a.Generation
}

func adapterNames(adapters []Adapter) []string {
	var all []string
	for i := range adapters {
		all = append(all, fmt.Sprintf("%q", adapters[i].Name))
	}
	slices.Sort(all)
	return all
}
