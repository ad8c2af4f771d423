package perftuning

import "strconv"

// port is one of the adapters that a scenario is for, with its processors: from base, number of them.
type port struct {
	base, number int
}

// last is the port's last processor.
func (p port) last() int { return p.base + p.number - 1 }

// at is the i-th of the port's processors, again from the first where there are no more.
func (p port) at(i int) int { return p.base + i%p.number }

// assignment is a key and the value that it gets.
type assignment struct{ key, value string }

func set(key string, n int) assignment { return assignment{key, strconv.Itoa(n)} }

const (
	mostRings     = 8  // the default of *NumRSSQueues
	mostProcessor = 63 // of a processor group
)

// rings are the receive queues for so many processors: a power of two, as RSS spreads over no other number evenly.
func rings(processors int) int {
	n := 1
	for n*2 <= processors && n < mostRings {
		n *= 2
	}
	return n
}

// rss are the keys that keep a port on its processors: those of NDIS 6.2 and of NDIS 6.3.
func (p port) rss() []assignment {
	return []assignment{
		set("*RssBaseProcNumber", p.base), set("*MaxRSSProcessors", min(p.number, mostProcessor)),
		set("*NumRSSQueues", rings(p.number)), set("*RssMaxProcNumber", p.last()),
	}
}

// streams are the keys of the scenarios in which a machine is the end of what it receives (WinOF 5.50, 4.9.1.6).
func streams() []assignment {
	return []assignment{set("SendCompletionMethod", 0), set("RecvCompletionMethod", 2), set("*ReceiveBuffers", 1024), set("*RSSProfile", 4)}
}

// single is -s: packets that RSS does not spread, completions of sends and forwarding each have a processor of their
// own, as far as there are enough.
func single(p port) []assignment {
	return append(append(streams(),
		set("DefaultRecvRingProcessor", p.at(0)), set("TxInterruptProcessor", p.at(1)), set("TxForwardingProcessor", p.at(2))), p.rss()...)
}

// stream is -st: one connection lands on one ring, so that the default ring's processor takes no other part.
func stream(p port) []assignment {
	return append(append(streams(),
		set("DefaultRecvRingProcessor", p.at(p.number-1)), set("TxInterruptProcessor", p.at(0)), set("TxForwardingProcessor", p.at(1))), p.rss()...)
}

// dual is -d, of one of the two ports, which share the processors.
func dual(p port) []assignment {
	return append(append(streams(), set("DefaultRecvRingProcessor", p.at(0)), set("TxForwardingProcessor", p.at(1))), p.rss()...)
}

// forwarding is -f: what a port sends came in at the other one, whose processors have it in their caches.
func forwarding(p, other port) []assignment {
	return append([]assignment{
		set("SendCompletionMethod", 1), set("RecvCompletionMethod", 0), set("*ReceiveBuffers", 4096), set("UseRSSForRawIP", 0), set("UseRSSForUDP", 0),
		set("DefaultRecvRingProcessor", p.at(0)), set("TxInterruptProcessor", p.at(1)), set("TxForwardingProcessor", other.at(0)),
	}, p.rss()...)
}

// manual is -m.
func manual(p port) []assignment {
	return []assignment{
		set("*RssBaseProcNumber", p.base), set("*MaxRSSProcessors", p.number),
		set("DefaultRecvRingProcessor", p.at(0)), set("TxInterruptProcessor", p.at(1)),
	}
}

// defaults is -r: what the manual prints, and what scenarios set beside it back to the defaults of the keys ("").
func defaults() []assignment {
	return []assignment{
		set("SendCompletionMethod", 1), set("RecvCompletionMethod", 2), set("*ReceiveBuffers", 1024), set("UseRSSForRawIP", 1),
		{"DefaultRecvRingProcessor", "-1"}, {"TxInterruptProcessor", "-1"}, {"TxForwardingProcessor", "-1"}, set("UseRSSForUDP", 1),
		set("*MaxRSSProcessors", 8), set("*NumRSSQueues", 8),
		{"*RSSProfile", ""}, {"*RssBaseProcNumber", ""}, {"*RssMaxProcNumber", ""},
	}
}

// share divides a machine's processors among ports. Where there are fewer than ports, they share them.
func share(processors, ports int) []port {
	processors = min(max(processors, 1), mostProcessor+1)
	out := make([]port, ports)
	for i := range out {
		if processors < ports {
			out[i] = port{i % processors, 1}
			continue
		}
		from, to := i*processors/ports, (i+1)*processors/ports
		out[i] = port{from, to - from}
	}
	return out
}
