package collector

import (
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/device"
)

// lldpWords says where the counters of an LLDP agent are read.
var lldpWords = map[string]func(*dcb.Counters) uint64{
	"sent_frames":           func(c *dcb.Counters) uint64 { return c.FramesOut },
	"received_frames":       func(c *dcb.Counters) uint64 { return c.FramesIn },
	"received_error_frames": func(c *dcb.Counters) uint64 { return c.FramesInErrors },
	"discarded_frames":      func(c *dcb.Counters) uint64 { return c.FramesDiscarded },
	"discarded_tlvs":        func(c *dcb.Counters) uint64 { return c.TLVsDiscarded },
	"unrecognized_tlvs":     func(c *dcb.Counters) uint64 { return c.TLVsUnrecognized },
	"ageouts":               func(c *dcb.Counters) uint64 { return c.Ageouts },
	"shutdowns":             func(c *dcb.Counters) uint64 { return c.Shutdowns },
	"multiple_peers":        func(c *dcb.Counters) uint64 { return c.MultiplePeers },
	"invalid_dcbx_settings": func(c *dcb.Counters) uint64 { return c.DCBXInvalid },
	"dcbx_configurations":   func(c *dcb.Counters) uint64 { return c.DCBXConfiguration },
}

// LLDP returns the counters of an agent by their short names.
func LLDP(c *dcb.Counters) map[string]uint64 {
	out := make(map[string]uint64, len(lldpWords))
	for name, read := range lldpWords {
		out[name] = read(c)
	}
	return out
}

// ofAgent returns where an adapter's counters of its agent are read.
func ofAgent() map[string]func(*device.Counters) uint64 {
	set := map[string]func(*device.Counters) uint64{}
	for name, read := range lldpWords {
		set[name] = func(c *device.Counters) uint64 { return read(&c.LLDP) }
	}
	return set
}
