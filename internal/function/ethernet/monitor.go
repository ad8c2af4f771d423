package ethernet

import (
	"encoding/binary"

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
// headers, and in a tunnel by those of the frame in it.
func kindOf(h *eth.Headers, b []byte, t rss.Types) int {
	kind := hashed
	switch t {
	case 0:
		var inner eth.Headers
		switch at := inTunnel(h, b); {
		case at == 0:
			return bare + kindWithout(h)
		case !inner.Parse(b[at:]):
			return kindMisc
		}
		return kindWithout(&inner)
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
	if inTunnel(h, b) == 0 {
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

const (
	vxlanPort   = 4789 // RFC 7348, 5; *VxlanUDPPortNumber is only stored
	vxlanLen    = 8
	protocolGRE = 47
	nvgreLen    = 8      // RFC 7637, 3.2: GRE with a key
	nvgreBegins = 0x2000 // its flags and version
	bridged     = 0x6558 // GRE's type of Ethernet frames
)

// inTunnel returns where the frame in a tunnel (VXLAN or NVGRE) begins; 0: there is none.
func inTunnel(h *eth.Headers, b []byte) int {
	switch {
	case h.Version == 0 || h.Fragment:
	case h.Protocol == eth.ProtocolUDP && h.Data != 0:
		if binary.BigEndian.Uint16(b[h.Transport+2:]) == vxlanPort && h.End >= h.Data+vxlanLen {
			return h.Data + vxlanLen
		}
	case h.Protocol == protocolGRE && h.End >= h.Transport+nvgreLen:
		if g := b[h.Transport:]; binary.BigEndian.Uint16(g) == nvgreBegins && binary.BigEndian.Uint16(g[2:]) == bridged {
			return h.Transport + nvgreLen
		}
	}
	return 0
}
