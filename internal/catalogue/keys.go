package catalogue

import (
	"slices"
	"strings"
	"sync"
)

// Keys returns all registry keys, in the order of the manuals' tables. Callers may sort or cut the slice,
// but must not change what its elements point to.
func Keys() []Key {
	return slices.Clone(keys())
}

// keys are the tables in the order of the documentation.
var keys = sync.OnceValue(func() []Key {
	return slices.Concat(
		basicKeys(), offloadKeys(), performanceKeys(), ethernetKeys(), flowControlKeys(), vmqKeys(), ipoibKeys(), generalKeys(),
		sriovKeys(), roceKeys(), busKeys(), rdmaKeys(), qosKeys(), dscpKeys(), dcqcnKeys(), dcbxKeys(), rssKeys(), rssMonitoringKeys(),
		losslessKeys(), burstKeys(), stallKeys(), queueLifetimeKeys(), spoofKeys(), dhcpKeys(), vfMonitoringKeys(), dumpMeNowKeys(),
		selfHealingKeys(), stateDumpKeys(), systemKeys(),
	)
})

// index maps lower-case names and aliases to positions in keys.
var index = sync.OnceValue(func() map[string][]int {
	m := map[string][]int{}
	for i, k := range keys() {
		for _, n := range append([]string{k.Name}, k.Aliases...) {
			n = strings.ToLower(n)
			m[n] = append(m[n], i)
		}
	}
	return m
})

// KeysFor returns the keys that an adapter such as t has, in the order of Keys.
func KeysFor(t Target) []Key {
	a := make([]Key, 0, len(keys()))
	for _, k := range keys() {
		if k.applies(t) {
			a = append(a, k)
		}
	}
	return a
}

// Lookup finds keys by name or alias, in any letter case and with or without the asterisk of the
// standardized keywords. It returns those of every generation and path, in the order of Keys.
func Lookup(name string) []Key {
	name = strings.ToLower(name)
	found := index()[name]
	if len(found) == 0 {
		if short, ok := strings.CutPrefix(name, "*"); ok {
			found = index()[short]
		} else {
			found = index()["*"+name]
		}
	}
	a := make([]Key, 0, len(found))
	for _, i := range found {
		a = append(a, keys()[i])
	}
	return a
}

// LookupFor finds the keys of an adapter such as t by name or alias, in order of precedence: the adapter's
// own place before the device's, the driver's and the machine's, unless a key says otherwise. Several keys
// of one place are those that an alias stands for.
func LookupFor(name string, t Target) []Key {
	a := slices.DeleteFunc(Lookup(name), func(k Key) bool { return !k.applies(t) })
	slices.SortStableFunc(a, func(x, y Key) int { return x.precedence() - y.precedence() })
	return a
}

// precedence is lower if the key's value takes precedence.
func (k Key) precedence() int {
	if k.Overrides {
		return -1
	}
	return int(k.Base)
}

// LookupAt finds the keys of an adapter such as t by name or alias in one place: none if that belongs to
// the driver of another generation.
func LookupAt(p Place, name string, t Target) []Key {
	if p.Base == DriverService && p.Generation != t.Generation {
		return nil
	}
	return slices.DeleteFunc(LookupFor(name, t), func(k Key) bool { return !k.In(p) })
}
