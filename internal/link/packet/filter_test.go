package packet

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

var (
	v4a = netip.MustParseAddr("192.0.2.1")
	v4b = netip.MustParseAddr("192.0.2.2")
	v6a = netip.MustParseAddr("2001:db8::1")
	v6b = netip.MustParseAddr("2001:db8::2")
)

// seen is a packet at the place where a filter looks at it.
type seen struct {
	frame []byte
	at    int // offset at which the filter begins: 0 at the ring, the UDP header at the socket
	kind  uint32
	ifi   uint32
	tag   uint32
}

// run interprets the part of classic BPF that the filters use (linux/filter.h) and returns how many bytes are
// accepted. The machine of package bpf knows neither the extensions nor the offset.
func run(t *testing.T, program []bpf.Instruction, s seen) uint32 {
	t.Helper()
	if _, err := bpf.Assemble(program); err != nil {
		t.Fatal(err)
	}
	var a uint32
	for pc := 0; ; pc++ {
		if pc >= len(program) {
			t.Fatal("the program runs past its last instruction")
		}
		switch i := program[pc].(type) {
		case bpf.LoadExtension:
			a = map[bpf.Extension]uint32{bpf.ExtType: s.kind, bpf.ExtInterfaceIndex: s.ifi, bpf.ExtVLANTag: s.tag}[i.Num]
		case bpf.LoadAbsolute:
			at := s.at + int(i.Off)
			if i.Off >= networkLayer {
				at = eth.EthernetLen + int(i.Off-networkLayer)
			}
			if at+i.Size > len(s.frame) {
				return 0
			}
			a = 0
			for _, b := range s.frame[at : at+i.Size] {
				a = a<<8 | uint32(b)
			}
		case bpf.RetConstant:
			return i.Val
		case bpf.JumpIf:
			holds := map[bpf.JumpTest]bool{bpf.JumpEqual: a == i.Val, bpf.JumpGreaterThan: a > i.Val, bpf.JumpBitsNotSet: a&i.Val == 0}
			if holds[i.Cond] {
				pc += int(i.SkipTrue)
			} else {
				pc += int(i.SkipFalse)
			}
		default:
			t.Fatalf("instruction %d is %v, which this machine does not know", pc, i)
		}
	}
}

// framed returns a frame with n bytes of UDP payload from src to the test port at dst.
func framed(src, dst netip.Addr, n int) []byte {
	r := &frame.Route{Src: src, Dst: dst, SrcPort: 0xc123, DstPort: 4791}
	o := &frame.Out{}
	o.Reset(r)
	o.HeadEnd += 12
	o.TailLen = 4
	o.Payload = make([]byte, n-16)
	b := make([]byte, mostHeaders+n)
	return b[:build(b, begins(r), 4791, o)]
}

// filterCase is a frame and what the filters do with it.
type filterCase struct {
	name     string
	src, dst netip.Addr
	n        int
	change   func(b []byte)
	kind     uint32
	ifi      uint32
	ring     uint32 // bytes in the ring
	dropped  bool   // by the socket, if it gets there
}

// theInterface is the interface of the rules.
const theInterface = 7

func filterCases() []filterCase {
	const ifi = theInterface
	put16 := func(at int, v uint16) func(b []byte) {
		return func(b []byte) { binary.BigEndian.PutUint16(b[at:], v) }
	}
	none := func([]byte) {}
	return []filterCase{
		{"IPv4, short", v4a, v4b, 20, none, 0, ifi, whole, true},
		{"IPv4, the longest short", v4a, v4b, MostPayload, none, 0, ifi, whole, true},
		{"IPv4, longer", v4a, v4b, MostPayload + 4, none, 0, ifi, 42, false},
		{"IPv6, short", v6a, v6b, 20, none, 0, ifi, whole, true},
		{"IPv6, longer", v6a, v6b, 4096, none, 0, ifi, 62, false},
		{"IPv4, to another port", v4a, v4b, 20, put16(36, 4792), 0, ifi, 0, true},
		{"IPv6, to another port", v6a, v6b, 20, put16(56, 53), 0, ifi, 0, true},
		{"IPv4, to another address", v4a, v4a, 20, none, 0, ifi, 0, true},
		{"IPv6, to another address", v6a, v6a, 20, none, 0, ifi, 0, true},
		{"IPv4, a fragment", v4a, v4b, 20, put16(20, 0x2000), 0, ifi, 0, true},
		{"IPv4, the last fragment", v4a, v4b, 20, put16(20, 0x0010), 0, ifi, 0, true},
		{"IPv4 with options", v4a, v4b, 20, func(b []byte) { b[14] = 0x46 }, 0, ifi, 0, false},
		{"IPv4, TCP", v4a, v4b, 20, func(b []byte) { b[23] = 6 }, 0, ifi, 0, true},
		{"IPv6 with an extension header", v6a, v6b, 20, func(b []byte) { b[20] = 60 }, 0, ifi, 0, false},
		{"of another Ethernet type", v4a, v4b, 20, put16(12, 0x0806), 0, ifi, 0, true},
		{"to another station", v4a, v4b, 20, none, 3, ifi, 0, false},
		{"to all stations", v4a, v4b, 20, none, 1, ifi, 0, false},
		{"by another interface", v4a, v4b, 20, none, 0, ifi + 1, whole, false}, // where the ring is not bound
	}
}

// of returns the frame of a case and the rule for its destination.
func (c *filterCase) of() ([]byte, Rule) {
	b := framed(c.src, c.dst, c.n)
	c.change(b)
	r := Rule{Addr: v4b, Port: 4791, Interface: theInterface}
	if !c.dst.Is4() {
		r.Addr = v6b
	}
	return b, r
}

// TestFilters: every packet is whole in exactly one place: what the ring has whole, the socket drops.
func TestFilters(t *testing.T) {
	for _, c := range filterCases() {
		b, r := c.of()
		if got := run(t, r.ring(), seen{frame: b, kind: c.kind, ifi: c.ifi}); got != c.ring {
			t.Errorf("%s: %d bytes in the ring, want %d", c.name, got, c.ring)
		}
		if got := run(t, r.socket(), seen{frame: b, at: r.headers() - eth.UDPLen, kind: c.kind, ifi: c.ifi}); (got == 0) != c.dropped {
			t.Errorf("%s: the socket accepts %d bytes; dropped wanted: %v", c.name, got, c.dropped)
		}
	}
}

// TestRingFilterOfTags: a tag with a priority alone changes nothing; a packet of a VLAN belongs to another interface
// and is not taken.
func TestRingFilterOfTags(t *testing.T) {
	r := Rule{Addr: v4b, Port: 4791}
	for tag, want := range map[uint32]uint32{0: whole, 0x6000: whole, 5: 0, 0x6fff: 0} {
		if got := run(t, r.ring(), seen{frame: framed(v4a, v4b, 20), tag: tag}); got != want {
			t.Errorf("tag %#x: %d bytes in the ring, want %d", tag, got, want)
		}
	}
}

// TestRingFilterOfCutFrames: a frame cut off within its headers is never taken into the ring.
func TestRingFilterOfCutFrames(t *testing.T) {
	for _, r := range []Rule{{Addr: v4b, Port: 4791}, {Addr: v6b, Port: 4791}} {
		src := v4a
		if !r.Addr.Is4() {
			src = v6a
		}
		b := framed(src, r.Addr, 20)
		for n := range r.headers() - 2 { // up to the UDP checksum, which the filter does not read
			if got := run(t, r.ring(), seen{frame: b[:n]}); got != 0 {
				t.Errorf("%v: %d of %d bytes are taken", r.Addr, n, len(b))
			}
		}
	}
}
