package catalogue

import (
	"strings"
	"sync"
)

// CounterSets lists all counter sets: those of the manuals, in their order, and SoftVPI's own. They must not be modified.
func CounterSets() []CounterSet { return counterSets() }

var counterSets = sync.OnceValue(func() []CounterSet {
	return []CounterSet{
		adapterTraffic(), portTraffic(), adapterDiagnostics(), adapterQoS(), adapterRSS(), rdmaActivity(), deviceCounters(),
		winofBus(), congestionControl(), datapathStatistics(), sendStatistics(), vfMonitoring(), networkInterface(),
		softTransport(), softConnections(), softHealing(), softLink(), softIPoIB(), softEthernet(), softLLDP(),
		softReceiveQueues(), softSendQueues(), softFunctions(), softVLANs(), softQueues(), softOverlay(), softTeams(),
		softTeamMembers(),
	}
})

// CounterSetNamed returns the set with that printed name, alias or short name, in any letter case.
func CounterSetNamed(name string) (*CounterSet, bool) {
	all := counterSets()
	for i := range all {
		if all[i].is(name) {
			return &all[i], true
		}
	}
	return nil, false
}

// is reports whether name means the set.
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

// Index returns the index of the counter with that printed or short name, in any letter case, or -1.
func (s *CounterSet) Index(name string) int {
	for i := range s.Counters {
		if strings.EqualFold(name, s.Counters[i].Name) || strings.EqualFold(name, s.Counters[i].Short) {
			return i
		}
	}
	return -1
}

// Has reports whether adapters of a generation have the i-th counter of the set.
func (s *CounterSet) Has(i int, g Generation) bool {
	if of := s.Counters[i].Generations; of != 0 {
		return of&g != 0
	}
	return s.Generations&g != 0
}

// KilobytesPerSecond is the unit of rates that are computed from totals in bytes.
const KilobytesPerSecond = "KB/s"

// Scale is by what a rate of the totals is multiplied to be in the counter's unit.
func (c *Counter) Scale() float64 {
	if c.Unit == KilobytesPerSecond {
		return 1e-3
	}
	return 1
}

// Counted reports whether the counter has a value.
func (c *Counter) Counted() bool { return c.Status == Built }

// total returns a counter that only grows.
func total(name, short, unit, description string) Counter {
	return Counter{Name: name, Short: short, Kind: Total, Unit: unit, Description: description}
}

// level returns a counter that goes up and down; it is never reset.
func level(name, short, unit, description string) Counter {
	return Counter{Name: name, Short: short, Kind: Level, Unit: unit, Description: description, Keeps: true}
}

// rate returns a counter that is the rate per second of others, or of a total of its own.
func rate(name, short, unit, description string, of ...string) Counter {
	return Counter{Name: name, Short: short, Kind: Rate, Unit: unit, Description: description, Of: of}
}

// counted marks counters as having values.
func counted(all ...Counter) []Counter {
	for i := range all {
		all[i].Status = Built
	}
	return all
}

// carried returns the counters of the frames and bytes that something sends and receives, which several sets have.
func carried() []Counter {
	return []Counter{
		total("Bytes Sent", "sent_bytes", "bytes", "bytes of frames sent"),
		rate("Bytes Sent/Sec", "sent_bytes_per_second", "bytes/s", "bytes sent a second", "sent_bytes"),
		total("Frames Sent", "sent_frames", "frames", "frames sent"),
		total("Bytes Received", "received_bytes", "bytes", "bytes of frames received"),
		rate("Bytes Received/Sec", "received_bytes_per_second", "bytes/s", "bytes received a second", "received_bytes"),
		total("Frames Received", "received_frames", "frames", "frames received"),
	}
}

// whole marks a counter as that of the whole device.
func whole(c Counter) Counter {
	c.Whole = true
	return c
}

// notCounted are counters of what is not implemented yet.
func notCounted(all ...Counter) []Counter { return all }

// joined concatenates lists.
func joined(lists ...[]Counter) []Counter {
	var all []Counter
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
