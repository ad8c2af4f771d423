package hostside

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// enclosing is an end of a host that knows large packets in tunnels.
type enclosing struct{ *end }

func (enclosing) Tunnels() bool { return true }

// newTunnelBed returns hosts with virtio headers, of which some know large packets in tunnels.
func newTunnelBed(t testing.TB, change func(*ethernet.Config), knows ...bool) *bed {
	b := &bed{Port: &port.Port{}, t: t, out: make([]frame.Out, 128)}
	w := &port.Wire{}
	for i, mac := range []eth.MAC{macA, macB} {
		b.ends[i] = &end{virtio: true, bursts: true, room: -1}
		if b.side[i] = New(b.ends[i], nil, nil); knows[i] {
			b.side[i] = New(enclosing{b.ends[i]}, nil, nil)
		}
		b.plug(w, b.side[i], mac, change)
	}
	return b
}

// enclosed returns a large frame in a tunnel from A to B, as a host that knows such hands it over.
func enclosed(port uint16, n int) (whole, payload []byte) {
	_, f := tcp(n, 1400)
	o := tunnel.Outer{Ethernet: eth.Ethernet{Dst: macB, Src: macA}, Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
		TTL: 9, SrcPort: 50000, DstPort: port}
	b := o.Append(nil, tunnel.Header{Kind: tunnel.VXLAN, ID: 7}, f)
	if port != tunnel.Port { // a header that VXLAN cannot have: GENEVE's (RFC 8926, 3.4)
		copy(b[42:], []byte{0, 0, 0x65, 0x58})
	}
	h := offload.Header{NeedsChecksum: true, Kind: offload.TCPv4 | offload.Tunnel4, Headers: 104, Segment: 1400, ChecksumStart: 84,
		ChecksumAt: 16, Outer: 34, Inner: 64}
	whole = append(make([]byte, offload.TunnelHeaderLen), b...)
	h.PutTunnel(whole)
	return whole, f[54:]
}

// TestSide_Tunnel: a large packet in VXLAN passes between hosts that know such as it is. Others get what it stands for, and so does
// everybody if the key is off, at another port, and of a tunnel that is none of VXLAN.
func TestSide_Tunnel(t *testing.T) {
	off := func(c *ethernet.Config) { c.TunnelVXLAN = 0 }
	elsewhere := func(c *ethernet.Config) { c.VxlanUDPPort = 8472 }
	for name, c := range map[string]struct {
		change   func(*ethernet.Config)
		port     uint16
		knows    bool
		got      int
		finished uint64
	}{
		"unsplit":               {nil, tunnel.Port, true, 1, 0},
		"to one that does not":  {nil, tunnel.Port, false, 29, 0},
		"the key off":           {off, tunnel.Port, true, 29, 1},
		"at another port":       {elsewhere, tunnel.Port, true, 29, 1},
		"GENEVE":                {nil, 6081, true, 29, 1},
		"smaller than LSO asks": {func(c *ethernet.Config) { c.LSOMinSegment = 32 }, tunnel.Port, true, 29, 1},
	} {
		b := newTunnelBed(t, c.change, true, c.knows)
		whole, payload := enclosed(c.port, 40000)
		b.ends[0].send = [][]byte{bytes.Clone(whole)}
		b.run()
		s := b.side[0].Counters()
		if len(b.ends[1].got) != c.got || s.Finished != c.finished || s.BadHeaders != 0 || b.side[0].Sending() != 0 {
			t.Errorf("%s: %d frames arrive, want %d; %+v", name, len(b.ends[1].got), c.got, s)
			continue
		}
		if c.got == 1 {
			if !bytes.Equal(b.ends[1].got[0], whole) {
				t.Errorf("%s: it arrives as %x, want %x", name, b.ends[1].got[0][:130], whole[:130])
			}
			continue
		}
		var joined []byte
		for _, f := range b.ends[1].got {
			skip := offload.HeaderLen
			if c.knows {
				skip = offload.TunnelHeaderLen
			}
			f = f[skip:]
			var h, x eth.Headers
			h.Parse(f)
			x.Parse(f[50:])
			if len(f) > 1514 || eth.UDP(f[34:]).Length() != len(f)-34 || offload.Check(&h, f)&offload.BadIP != 0 ||
				offload.Check(&x, f[50:]) != offload.GoodIP|offload.GoodTransport {
				t.Errorf("%s: a frame of %d bytes", name, len(f))
			}
			joined = append(joined, f[50+x.Data:50+x.End]...)
		}
		if !bytes.Equal(joined, payload) {
			t.Errorf("%s: %d bytes arrive", name, len(joined))
		}
	}
}

// TestSide_TunnelOffered: the host may leave them so as long as the key says so, and no limit of its interface cuts them.
func TestSide_TunnelOffered(t *testing.T) {
	b := newTunnelBed(t, nil, true, false)
	if o := b.ends[0].offered; !o.Tunnels || o.LargeSize != 65536 {
		t.Errorf("%+v", o)
	}
	if o := b.ends[1].offered; o.Tunnels || o.LargeSize != 64000 {
		t.Errorf("one that does not know: %+v", o)
	}
	for name, change := range map[string]func(*ethernet.Config){
		"the key off": func(c *ethernet.Config) { c.TunnelVXLAN = 0 }, "no large sends": func(c *ethernet.Config) { c.LsoV2IPv4 = 0 },
	} {
		if o := newTunnelBed(t, change, true, true).ends[0].offered; o.Tunnels {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if o := newTunnelBed(t, func(c *ethernet.Config) { c.LSOSize = 9000 }, true, true).ends[0].offered; !o.Tunnels || o.LargeSize != 9000 {
		t.Errorf("a limit that was chosen: %+v", o)
	}
}

// TestSide_TunnelHeaders: headers that say what cannot be lose the frame, and nothing else.
func TestSide_TunnelHeaders(t *testing.T) {
	b := newTunnelBed(t, nil, true, true)
	for i, change := range []func(f []byte){
		func(f []byte) { f[0] = 0 },        // no checksum to be made
		func(f []byte) { f[1] |= 0x60 },    // over both versions
		func(f []byte) { f[6]++ },          // a checksum elsewhere
		func(f []byte) { f[24+12] = 9 },    // no IP outside
		func(f []byte) { f[24+50+14] = 9 }, // none inside
		func(f []byte) { f[24+84+12] = 0 }, // a header of TCP that is none
		func(f []byte) { f[4], f[5] = 0, 0 } /* no segment size */} {
		f, _ := enclosed(tunnel.Port, 4000)
		change(f)
		b.ends[0].send = append(b.ends[0].send, f)
		if b.run(); b.side[0].Counters().BadHeaders != uint64(i+1) || len(b.ends[1].got) != 0 {
			t.Errorf("%d: %+v, %d arrive", i, b.side[0].Counters(), len(b.ends[1].got))
		}
	}
	for n := range 150 {
		f, _ := enclosed(tunnel.Port, 4000)
		b.ends[0].send = append(b.ends[0].send, f[:n])
		b.run()
	}
	good, _ := enclosed(tunnel.Port, 4000)
	b.ends[0].send, b.ends[1].got = append(b.ends[0].send, bytes.Clone(good)), nil
	if b.run(); len(b.ends[1].got) != 1 || !bytes.Equal(b.ends[1].got[0], good) {
		t.Error("a good one does not arrive then")
	}
}
