// Package tuning defines the tuning scenarios of the device manager's Performance tab and of perf_tuning
// as data, plans their changes, and keeps the log with which they can be undone (WinOF 5.50, 4.9.1.5 and
// 4.9.1.6).
package tuning

import "strconv"

// Scenario is a kind of traffic, with suitable values of keys.
type Scenario struct {
	Name   string `json:"name"`
	Option string `json:"option" doc:"Of perf_tuning."`
	Title  string `json:"title" doc:"As the Performance tab calls it."`
	Text   string `json:"text"`
	// Fewest and Most are the numbers of adapters that it is for.
	Fewest int `json:"fewest_adapters"`
	Most   int `json:"most_adapters"`
	// Chosen says that the request chooses the processors.
	Chosen bool  `json:"chosen_processors" doc:"The request chooses the processors."`
	Keys   []Key `json:"keys"`
	// Ethernet says that InfiniBand adapters are refused.
	Ethernet bool `json:"ethernet,omitempty" doc:"The adapters have to be Ethernet."`
	// single says that it is for the first adapter, and the second gets the defaults.
	single bool
}

// Key is a registry key that a scenario sets.
type Key struct {
	Name  string `json:"name"`
	Value string `json:"value" doc:"What it is set to, or how that is chosen."`
	// IPoIB is the value on InfiniBand adapters where it differs.
	IPoIB string `json:"ipoib_value,omitempty" doc:"What it is set to on an InfiniBand adapter, where that differs."`
	value func(own, other processorRange) string
}

// Undo is the scenario of a request to undo the last change of its adapters.
const Undo = "undo"

// fixed sets a key to a number.
func fixed(name string, n int) Key {
	text := strconv.Itoa(n)
	return Key{Name: name, Value: text, value: func(processorRange, processorRange) string { return text }}
}

// fixedByPort sets a key to a number that depends on whether the port is Ethernet or InfiniBand.
func fixedByPort(name string, ethernet, ipoib int) Key {
	k := fixed(name, ethernet)
	k.IPoIB = strconv.Itoa(ipoib)
	return k
}

// standard resets a key to its default.
func standard(name string) Key {
	return Key{Name: name, Value: "default", value: func(processorRange, processorRange) string { return "" }}
}

// own sets a key to the i-th of the adapter's processors, counted from the last where i is negative.
func own(name string, i int) Key {
	value := func(own, _ processorRange) string { return strconv.Itoa(own.at(i)) }
	return Key{Name: name, Value: "one of the adapter's processors", value: value}
}

// other sets a key to the first of the other adapter's processors.
func other(name string) Key {
	value := func(_, other processorRange) string { return strconv.Itoa(other.at(0)) }
	return Key{Name: name, Value: "one of the other adapter's processors", value: value}
}

// of sets a key to a value derived from the adapter's processors.
func of(name, what string, figure func(processorRange) int) Key {
	return Key{Name: name, Value: what, value: func(own, _ processorRange) string { return strconv.Itoa(figure(own)) }}
}

var (
	base = of("*RssBaseProcNumber", "the adapter's first processor", func(p processorRange) int { return p.Base })
	most = of("*MaxRSSProcessors", "the number of the adapter's processors",
		func(p processorRange) int { return min(p.Number, MostProcessor) })
	// rss are the keys that keep an adapter on its processors: those of NDIS 6.2 and of NDIS 6.3.
	rss = []Key{
		base, most,
		of("*NumRSSQueues", "a power of two, up to the number of processors and 8", processorRange.queues),
		of("*RssMaxProcNumber", "the adapter's last processor", processorRange.last),
	}
	// streams are those of the scenarios in which the machine is the final receiver.
	streams = []Key{fixed("SendCompletionMethod", 0), fixed("RecvCompletionMethod", 2), fixed("*ReceiveBuffers", 1024),
		fixed("*RSSProfile", 4)}
)

// keys concatenates lists of keys.
func keys(lists ...[]Key) (all []Key) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// defaults are the values printed in the manual; keys that other scenarios set are reset to their
// defaults.
var defaults = []Key{
	fixedByPort("SendCompletionMethod", 1, 0), fixed("RecvCompletionMethod", 2), fixed("*ReceiveBuffers", 1024), fixed("UseRSSForRawIP", 1),
	fixed("DefaultRecvRingProcessor", -1), fixed("TxInterruptProcessor", -1), fixed("TxForwardingProcessor", -1), fixed("UseRSSForUDP", 1),
	fixed("*MaxRSSProcessors", 8), fixed("*NumRSSQueues", 8),
	standard("*RSSProfile"), standard("*RssBaseProcNumber"), standard("*RssMaxProcNumber"),
}

var scenarios = []Scenario{
	{
		Name: "single", Option: "-s", Title: "Single port traffic", Fewest: 1, Most: 2, single: true,
		Text: "Traffic on one port at a time. A second adapter gets the defaults.",
		// Packets that RSS does not distribute, completions of sends, and forwarding each have a processor
		// of their own, as far as there are enough.
		Keys: keys(streams, []Key{own("DefaultRecvRingProcessor", 0), own("TxInterruptProcessor", 1), own("TxForwardingProcessor", 2)},
			rss),
	},
	{
		Name: "stream", Option: "-st", Title: "Single stream traffic", Fewest: 1, Most: 2, single: true, Ethernet: true,
		Text: "Programs with a single connection. A second adapter gets the defaults.",
		// One connection ends up on one ring, so the default ring's processor does nothing else.
		Keys: keys(streams, []Key{own("DefaultRecvRingProcessor", -1), own("TxInterruptProcessor", 0), own("TxForwardingProcessor", 1)},
			rss),
	},
	{
		Name: "dual", Option: "-d", Title: "Dual port traffic", Fewest: 2, Most: 2,
		Text: "Traffic on two ports at once, which share the processors.",
		Keys: keys(streams, []Key{own("DefaultRecvRingProcessor", 0), own("TxForwardingProcessor", 1)}, rss),
	},
	{
		Name: "forwarding", Option: "-f", Title: "Forwarding traffic", Fewest: 2, Most: 2,
		Text: "What comes in at one port leaves by the other.",
		// What a port sends arrived at the other one, whose processors have it in their caches.
		Keys: keys([]Key{
			fixed("SendCompletionMethod", 1), fixed("RecvCompletionMethod", 0), fixed("*ReceiveBuffers", 4096), fixed("UseRSSForRawIP", 0),
			fixed("UseRSSForUDP", 0),
			own("DefaultRecvRingProcessor", 0), own("TxInterruptProcessor", 1), other("TxForwardingProcessor"),
		}, rss),
	},
	{
		Name: "manual", Option: "-m", Title: "Manual", Fewest: 1, Most: 1, Chosen: true,
		Text: "Receive side scaling on the processors that you choose.",
		Keys: []Key{base, most, own("DefaultRecvRingProcessor", 0), own("TxInterruptProcessor", 1)},
	},
	{
		Name: "defaults", Option: "-r", Title: "Default settings", Fewest: 1, Most: 2,
		Text: "The values that the manual calls the defaults.",
		Keys: defaults,
	},
}

// Scenarios returns all scenarios, in display order.
func Scenarios() []Scenario { return scenarios }

// Find returns the scenario of that name.
func Find(name string) (Scenario, bool) {
	for _, s := range scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// assignment is a key and its new value; nil: its default.
type assignment struct {
	key   string
	value *string
}

// assignments returns the keys of adapter i of n, which is an InfiniBand one if ipoib.
func (s *Scenario) assignments(i, n int, ipoib bool, q *Request, processors int) (out []assignment) {
	list := s.Keys
	shares := share(processors, 1)
	switch {
	case s.Chosen:
		shares[0] = processorRange{q.Base, q.Number}
	case s.single && i > 0:
		list = defaults
	case s.Fewest > 1:
		shares = share(processors, n)
	}
	mine := min(i, len(shares)-1)
	for _, k := range list {
		a := assignment{key: k.Name}
		v := k.value(shares[mine], shares[len(shares)-1-mine])
		if ipoib && k.IPoIB != "" {
			v = k.IPoIB
		}
		if v != "" {
			a.value = &v
		}
		out = append(out, a)
	}
	return out
}
