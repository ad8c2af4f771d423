package overlay

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// superFrame returns a large frame of TCP from red's first adapter to the one on the other host, with n bytes of payload.
func superFrame(n int) []byte {
	e := eth.Ethernet{Dst: mac(21), Src: mac(11), Type: eth.TypeIPv4}
	var ip [eth.IPv4Len]byte
	eth.IPv4(ip[:]).Encode(0, len(ip)+eth.TCPLen+n, 7, 64, eth.ProtocolTCP, addr("10.0.0.11").As4(), addr("10.0.0.21").As4())
	b := append(e.Append(nil), ip[:]...)
	b = append(b, 0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, 0x10, 1, 0, 0, 0, 0, 0)
	return append(b, make([]byte, n)...)
}

var into = offload.Task{Kind: offload.TCPv4, Segment: 1410, Sums: offload.MakeTransport}

// heads is the length of all headers of a super-frame.
const heads = eth.EthernetLen + eth.IPv4Len + eth.TCPLen

// TestEncloses: a super-frame leaves as it is to where other hosts' MACs are known, as long as the packet outside can be that long.
func TestEncloses(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, false)
	if h.Encloses(redA, mac(21), 30000) {
		t.Error("to a host that is not known yet")
	}
	h.way(0, hostB)
	h.learn(hostB, macB)
	for name, c := range map[string]struct {
		from Port
		to   eth.MAC
		n    int
		want bool
	}{
		"to the other host": {redA, mac(21), 30000, true},
		"as long as it can": {redA, mac(21), offload.MaxPacket - 50 + eth.EthernetLen, true},
		"too long":          {redA, mac(21), offload.MaxPacket - 50 + eth.EthernetLen + 1, false},
		"to one here":       {redA, mac(12), 30000, false},
		"to the router":     {redA, Router, 30000, false},
		"to nobody":         {redA, mac(99), 30000, false},
		"of another subnet": {blueA, mac(21), 30000, false},
		"from nobody":       {99, mac(21), 30000, false},
	} {
		if got := h.Encloses(c.from, c.to, c.n); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	far := tables(hostA, tunnel.VXLAN)
	for i := range far.Records {
		if far.Records[i].Provider == hostB {
			far.Records[i].Provider = addr("203.0.113.9")
		}
	}
	h.can(h.SetTables(far))
	if h.Encloses(redA, mac(21), 30000) {
		t.Error("by a router that is not known yet")
	}
	h.way(0, addr("203.0.113.9"))
	if h.learn(gate, macB); !h.Encloses(redA, mac(21), 30000) {
		t.Error("not by a router")
	}
	far.Providers = nil
	if h.can(h.SetTables(far)); h.Encloses(redA, mac(21), 30000) {
		t.Error("without a way")
	}
}

// TestSend_Large: a super-frame gets the headers outside once, with lengths that hold for all of it; it counts as what it is cut into,
// and is too large only if that is.
func TestSend_Large(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		h := newHost(t, tunnel.VXLAN, true)
		task, outside := into, 50
		if v6 {
			x := tables(hostA, tunnel.VXLAN)
			for i := range x.Records {
				if x.Records[i].Provider == hostB {
					x.Records[i].Provider = addr("fd00:1::2")
				}
			}
			x.Addresses = []ProviderAddress{{netip.MustParsePrefix("fd00:1::1/64"), 0, tunnel.VXLAN}}
			h.can(h.SetTables(x))
			h.way(0, addr("fd00:1::2"))
			e := eth.Ethernet{Dst: macA, Src: macB, Type: eth.TypeIPv6}
			d := eth.Discovery{Advertisement: true, Solicited: true, Override: true, Target: addr("fd00:1::2"), Link: macB[:]}
			h.Arrive(0, d.AppendPacket(e.Append(nil), addr("fd00:1::2"), addr("fd00:1::1")), false)
			task.Segment, outside = 1390, 70
		}
		h.drain()
		b := superFrame(3 * int(task.Segment))
		f := Frame{Head: b[:heads], Body: b[heads:], Task: task}
		v := h.Send(0, redA, &f)
		if len(v.Outer) != outside {
			t.Fatalf("IPv6 %v: %+v", v6, v)
		}
		w := join(v.Outer, &f)
		var e eth.Headers
		if !e.Parse(w) || e.End != len(w) || e.Protocol != eth.ProtocolUDP || eth.UDP(w[e.Transport:]).Length() != len(w)-e.Transport {
			t.Errorf("IPv6 %v: %x", v6, w[:outside])
		}
		if sum := eth.UDP(w[e.Transport:]).Checksum(); v6 &&
			sum != eth.PseudoSum(addr("fd00:1::1"), addr("fd00:1::2"), eth.ProtocolUDP, len(w)-e.Transport) || !v6 && sum != 0 {
			t.Errorf("IPv6 %v: checksum %x outside", v6, sum)
		}
		if c := h.Counters(); c.Sent != 3 || c.SentBytes != uint64(len(b)+2*heads+3*outside) {
			t.Errorf("IPv6 %v: it counts as %d frames of %d bytes", v6, c.Sent, c.SentBytes)
		}
		f.Task.Segment++
		if v := h.Send(0, redA, &f); v.Why != TooLarge || v.Outer != nil {
			t.Errorf("IPv6 %v: segments that are too large: %+v", v6, v)
		}
	}
	h := newHost(t, tunnel.VXLAN, false)
	b := superFrame(3000)
	if v := h.Send(0, redA, &Frame{Head: b[:heads], Body: b[heads:], Task: into}); v.Why != Congested || len(h.held) != 0 {
		t.Errorf("one that would have to wait: %+v, %d wait", v, len(h.held))
	}
}

// TestArriveLarge: a super-frame from a tunnel is the one that was sent, and counts as what it was cut into.
func TestArriveLarge(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, true)
	b := superFrame(3000)
	copy(b, append(sliceOf(mac(11)), sliceOf(mac(21))...))
	w := tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: red}, b, nil)
	binary.BigEndian.PutUint16(w[eth.EthernetLen+eth.IPv4Len+6:], 0x1234) // not yet made
	task := into
	task.Kind = task.Kind.Around(4)
	if a := h.ArriveLarge(0, w, task); a.To != redA || !bytes.Equal(a.Frame, b) {
		t.Fatalf("%+v", a)
	}
	if c := h.Counters(); c.Arrived != 3 || c.ArrivedBytes != uint64(len(b)+2*heads+3*50) {
		t.Errorf("it counts as %d frames of %d bytes", c.Arrived, c.ArrivedBytes)
	}
	if a := h.ArriveLarge(0, w[:60], task); a.Frame != nil || h.Counters().Arrived != 3 {
		t.Errorf("a part of it: %+v", a)
	}
}

func sliceOf(m eth.MAC) []byte { return m[:] }
