package collector

import (
	"slices"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
)

// readTotal returns the current value of a total, and its value at the last reset.
type readTotal func(short string) (now, from uint64)

// readDevice reads the totals of all ports of a device.
func (c *Collector) readDevice(set string, ports []*Adapter) readTotal {
	return func(short string) (now, from uint64) {
		for _, a := range ports {
			n, f := readAdapter(set, a, c.bases[baseKey{set, a.Adapter}])(short)
			now, from = now+n, from+f
			if ofProcess[short] {
				break
			}
		}
		return now, from
	}
}

// readAdapter reads an adapter's totals since it was restarted or its set was reset.
func readAdapter(set string, a *Adapter, b *base) readTotal {
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

// readInterface reads an interface's totals since it was created or its set was reset.
func readInterface(set string, x *Interface, b *base) readTotal {
	from := &Interface{Ethernet: &device.EthernetStatus{}}
	if b != nil {
		if n := slices.IndexFunc(b.interfaces, func(o Interface) bool { return o.Made == x.Made }); n >= 0 {
			from = &b.interfaces[n]
		}
	}
	return func(short string) (uint64, uint64) {
		at := x.words(set)[short]
		return at(x), at(from)
	}
}

// raw returns the value of a counter since it was reset; for a rate that of the underlying total; nil if
// nothing counts it.
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

// totals returns the names of the totals that a counter is read from.
func totals(k *catalogue.Counter) []string {
	if len(k.Of) > 0 {
		return k.Of
	}
	return []string{k.Short}
}
