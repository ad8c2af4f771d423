package catalogue

import "strings"

// CounterSets are all the counter sets: those of the manuals, in their order, and SoftVPI's own. It is read only.
var CounterSets = []CounterSet{
	adapterTraffic,
	adapterDiagnostics,
	adapterQoS,
	adapterRSS,
	rdmaActivity,
	deviceCounters,
	winofBus,
	congestionControl,
	datapathStatistics,
	sendStatistics,
	vfMonitoring,
	networkInterface,
	softTransport,
	softConnections,
	softLink,
	softIPoIB,
}

// CounterSetNamed returns the set that a name means: its printed name, an alias or its short name, in any letter case.
func CounterSetNamed(name string) (*CounterSet, bool) {
	for i := range CounterSets {
		if CounterSets[i].is(name) {
			return &CounterSets[i], true
		}
	}
	return nil, false
}

// is says whether name means the set.
func (s *CounterSet) is(name string) bool {
	if strings.EqualFold(name, s.Name) || strings.EqualFold(name, s.Short) {
		return true
	}
	for _, a := range s.Aliases {
		if strings.EqualFold(name, a) {
			return true
		}
	}
	return false
}

// Index returns the place of the counter that a name means (printed or short, in any letter case), -1 for none.
func (s *CounterSet) Index(name string) int {
	for i := range s.Counters {
		if strings.EqualFold(name, s.Counters[i].Name) || strings.EqualFold(name, s.Counters[i].Short) {
			return i
		}
	}
	return -1
}

// Has says whether adapters of a generation have the i-th counter of the set.
func (s *CounterSet) Has(i int, g Generation) bool {
	if of := s.Counters[i].Generations; of != 0 {
		return of&g != 0
	}
	return s.Generations&g != 0
}

// Counted says whether the counter has a value.
func (c *Counter) Counted() bool { return c.Status == Built }

// total is a counter that only grows.
func total(name, short, unit, description string) Counter {
	return Counter{Name: name, Short: short, Kind: Total, Unit: unit, Description: description}
}

// level is a counter that goes up and down; it is never set back.
func level(name, short, unit, description string) Counter {
	return Counter{Name: name, Short: short, Kind: Level, Unit: unit, Description: description, Keeps: true}
}

// rate is a counter per second of others, or of a total of its own.
func rate(name, short, unit, description string, of ...string) Counter {
	return Counter{Name: name, Short: short, Kind: Rate, Unit: unit, Description: description, Of: of}
}

// counted says of counters that they have values.
func counted(all ...Counter) []Counter {
	for i := range all {
		all[i].Status = Built
	}
	return all
}

// only says of counters that one instance alone has values.
func only(instance string, all ...Counter) []Counter {
	for i := range all {
		all[i].Only = instance
	}
	return all
}

// notCounted are counters of what is not built yet.
func notCounted(all ...Counter) []Counter { return all }

// joined makes one list.
func joined(lists ...[]Counter) []Counter {
	var all []Counter
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
