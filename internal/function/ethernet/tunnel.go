package ethernet

import (
	"github.com/softvpi/softvpi/internal/frame"
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

// mostTunnelHead is how many bytes of headers a large send in a tunnel may have, which are in the Head of a frame.Out with a tag.
const mostTunnelHead = len(frame.Out{}.Head) - headAt - eth.VLANLen

// acceptTunnel checks a large send in a tunnel: it has to be one of those that are handled by what is inside, and what is inside is sent
// as it would be alone.
func (f *Function) acceptTunnel(p *posted) Refusal {
	h, c, t := &p.headers, &f.cfg, &f.tunnel
	if h.Protocol != eth.ProtocolUDP || c.lso() == 0 || !t.Find(h, p.Frame, c.tunnels()) {
		return NoTask
	}
	x, k, size := &t.Inner, p.Task.Kind.Inner(), int(p.Task.Segment)
	v4 := k == offload.TCPv4 && x.Version == 4 && c.LsoV2IPv4 != 0
	v6 := k == offload.TCPv6 && x.Version == 6 && c.LsoV2IPv6 != 0
	switch {
	case x.Protocol != eth.ProtocolTCP || x.Data == 0 || size == 0 || p.V1 || !v4 && !v6:
		return NoTask
	case x.Data > mostTunnelHead || h.Options || x.Options:
		return Options
	case x.Data-eth.VLANLen*int(h.Tags)+size > c.JumboPacket:
		return Long
	case len(p.Frame) > c.lso()+eth.EthernetLen+eth.VLANLen*int(h.Tags):
		return Long
	case x.Data-x.Transport > eth.TCPLen && c.LSOTcpOptions == 0:
		return Options
	case (x.End-x.Data+size-1)/size < c.LSOMinSegment:
		return FewSegments
	}
	p.Task.Sums, p.head = offload.MakeTransport, x.Data
	return 0
}

// inside returns the headers by which a frame is handled: in a tunnel those of the frame inside, in t, else its own. Places are from the
// start of the frame in either case.
func (c *Config) inside(t *tunnel.Frame, h *eth.Headers, b []byte) *eth.Headers {
	if h.Protocol != eth.ProtocolTCP && t.Find(h, b, c.tunnels()) {
		return &t.Inner
	}
	return h
}
