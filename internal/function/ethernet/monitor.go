package ethernet

import (
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/wire/eth"
)

// The kinds of frames that RSS monitoring tells apart, in the order of the counters of "Mellanox Adapter Rss Counters"
// (WinOF 5.50, 4.9.4.4.2).
const (
	kindIPv4 = iota
	kindIPv4TCP
	kindIPv4UDP
	kindIPv6
	kindIPv6TCP
	kindIPv6UDP
	kindMisc
	kindsOf // how many kinds there are, each without and with a hash, in a tunnel and not
)

// RSSCounters are those of "Mellanox Adapter Rss Counters", in its order (WinOF 5.50, 4.9.4.4.2): frames in a tunnel without a
// hash by their kind, those with one, then the same of other frames.
type RSSCounters [4 * kindsOf]uint64

// Add adds those of another processor.
func (c *RSSCounters) Add(o *RSSCounters) {
	for i := range c {
		c[i] += o[i]
	}
}

const (
	hashed = kindsOf     // what is added to the kind of a frame with a hash
	bare   = 2 * kindsOf // and of one that is in no tunnel
)

// WatchRSS makes RSS monitoring count from now on, if RssMonitoringEnabled allows it: somebody looks (WinOF 5.50,
// 4.9.4.4.2.1: RssCountersActivatedAtStartup).
func (f *Function) WatchRSS() { f.counting = f.cfg.RssMonitoringEnabled != 0 }

// RSSCounters returns how many frames of each kind were for a receive queue while RSS monitoring counted.
func (f *Function) RSSCounters(q int) *RSSCounters { return &f.receive[q].kinds }

// kindOf returns the index in RSSCounters of a frame with a hash over t; 0: it has none. What has no hash is told apart by its
// headers. Those of a frame in a tunnel are of the one inside, and so is its hash.
func kindOf(h *eth.Headers, inTunnel bool, t rss.Types) int {
	kind := hashed
	switch t {
	case 0:
		kind = kindWithout(h)
	case rss.IPv4:
		kind += kindIPv4
	case rss.TCPIPv4:
		kind += kindIPv4TCP
	case rss.UDPIPv4:
		kind += kindIPv4UDP
	case rss.IPv6, rss.IPv6Ex:
		kind += kindIPv6
	case rss.TCPIPv6, rss.TCPIPv6Ex:
		kind += kindIPv6TCP
	case rss.UDPIPv6, rss.UDPIPv6Ex:
		kind += kindIPv6UDP
	default:
		kind += kindMisc
	}
	if !inTunnel {
		kind += bare
	}
	return kind
}

// kindWithout returns the kind of a frame by its headers.
func kindWithout(h *eth.Headers) int {
	kind := kindIPv4
	switch {
	case h.Version == 0:
		return kindMisc
	case h.Version == 6:
		kind = kindIPv6
	}
	if h.Data != 0 {
		switch h.Protocol {
		case eth.ProtocolTCP:
			kind += kindIPv4TCP - kindIPv4
		case eth.ProtocolUDP:
			kind += kindIPv4UDP - kindIPv4
		}
	}
	return kind
}
