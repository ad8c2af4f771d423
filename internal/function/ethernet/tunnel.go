package ethernet

import (
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// tunnels returns the tunnels whose frames are handled by what is inside (WinOF 5.50, 4.1.15 VXLAN; WinOF-2 1.21, 3.3.2.3
// Enabling/Disabling NVGRE Offloading).
func (c *Config) tunnels() tunnel.Recognition {
	r := tunnel.Recognition{NVGRE: c.TunnelNVGRE != 0}
	if c.TunnelVXLAN != 0 {
		r.VXLANPort = uint16(c.VxlanUDPPort)
	}
	return r
}

// innerOf returns the headers by which a received frame is checked and spread. A burst of datagrams is several frames, and goes by
// those outside.
func (f *Function) innerOf(h *eth.Headers, b []byte, k offload.Kind) *eth.Headers {
	if k != offload.Whole && !k.InTunnel() {
		return h
	}
	return f.cfg.inside(&f.tunnel, h, b)
}

// inside returns the headers by which a frame is handled: in a tunnel those of the frame inside, in t, else its own. Places are from the
// start of the frame in either case.
func (c *Config) inside(t *tunnel.Frame, h *eth.Headers, b []byte) *eth.Headers {
	if h.Protocol != eth.ProtocolTCP && t.Find(h, b, c.tunnels()) {
		return &t.Inner
	}
	return h
}
