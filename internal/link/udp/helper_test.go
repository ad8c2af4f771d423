package udp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// variant is one way to open a link. Every test of behaviour runs on each.
type variant struct {
	name string
	v6   bool
	cfg  Config
}

// variants returns the ways to open a link on this platform.
func variants() []variant {
	all := []variant{
		{"portable/v4", false, Config{Portable: true}},
		{"portable/v6", true, Config{Portable: true}},
	}
	if runtime.GOOS != "linux" {
		return all
	}
	return append(all, []variant{
		{"bursts/v4", false, Config{}},
		{"bursts/v6", true, Config{}},
		{"bursts, no frames/v4", false, Config{Frames: packet.Off}},
		{"bursts, no frames/v6", true, Config{Frames: packet.Off}},
		{"no segmentation/v4", false, Config{NoSegmentation: true}},
		{"no coalescing/v4", false, Config{NoCoalescing: true}},
		{"singly/v4", false, Config{NoSegmentation: true, NoCoalescing: true}},
		{"singly/v6", true, Config{NoSegmentation: true, NoCoalescing: true}},
	}...)
}

// each runs a test on every variant.
func each(t *testing.T, test func(t *testing.T, v variant)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) { test(t, v) })
	}
}

// open opens a link at an address of its own, or on [::1] at a port of its own.
func (v variant) open(t testing.TB) Link {
	t.Helper()
	cfg := v.cfg
	if cfg.Port == 0 {
		cfg.Port = loopback.Port()
	}
	cfg.Addr = loopback.Addr()
	if v.v6 {
		cfg.Addr = netip.IPv6Loopback()
	}
	if runtime.GOOS == "darwin" && !v.v6 {
		cfg.Addr = netip.MustParseAddr("127.0.0.1")
	}
	l, err := Open(cfg)
	if v.v6 && errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("this host has no IPv6 loopback address")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func routeTo(t testing.TB, from, to Link) *frame.Route {
	t.Helper()
	r := &frame.Route{Dst: to.Status().Addr.Addr(), DstPort: to.Status().Addr.Port()}
	if err := from.Prepare(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// packets returns frames to a route that carry the payloads behind a BTH whose PSN counts from 0, in bursts as far as
// the link's capabilities and equal lengths allow.
func packets(r *frame.Route, caps link.Capabilities, payloads ...[]byte) []frame.Out {
	frames := make([]frame.Out, len(payloads))
	burst := 0
	for i, p := range payloads {
		o := &frames[i]
		o.Reset(r)
		bth := o.Head[frame.HeadRoom : frame.HeadRoom+12]
		bth[7] = 0x2a // destination QP
		binary.BigEndian.PutUint32(bth[8:], uint32(i))
		o.HeadEnd += 12
		o.Payload = p
		o.TailLen = 4
		binary.LittleEndian.PutUint32(o.Tail[:], 0xdecade00+uint32(i))
		if i > 0 && frames[i-1].Len() == frames[burst].Len() && o.Len() <= frames[burst].Len() &&
			i-burst < caps.MaxSegments && (i-burst+1)*frames[burst].Len() <= caps.MaxBurst {
			o.Segment = uint16(i - burst)
		} else {
			burst = i
		}
	}
	return frames
}

// packetBytes returns what must arrive for a frame.
func packetBytes(o *frame.Out) []byte {
	b := append([]byte{}, o.Head[o.HeadStart:o.HeadEnd]...)
	b = append(b, o.Payload...)
	return append(b, o.Tail[:o.TailLen]...)
}

// sendAll sends frames until all are taken.
func sendAll(t testing.TB, l Link, frames []frame.Out) {
	t.Helper()
	deadline := time.Now().Add(await.Limit)
	for len(frames) > 0 {
		n, err := l.Send(frames)
		if err != nil {
			t.Fatal(err)
		}
		frames = frames[n:]
		if time.Now().After(deadline) {
			t.Fatal("the link took no more frames")
		}
	}
}

// got is a copy of a received packet.
type got struct {
	data []byte
	in   frame.In
}

// receiveN receives n packets.
func receiveN(t testing.TB, l Link, n int) []got {
	t.Helper()
	var all []got
	in := make([]frame.In, 7)
	deadline := time.Now().Add(await.Limit)
	for len(all) < n {
		k, err := l.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in[:k] {
			all = append(all, got{append([]byte{}, p.Data...), p})
		}
		if k == 0 {
			runtime.Gosched()
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d packets arrived; stats %+v", len(all), n, l.Stats())
			}
		}
	}
	return all
}

// payloadsOf returns n payloads of the given length that differ from each other.
func payloadsOf(n, length int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = make([]byte, length)
		for k := range all[i] {
			all[i][k] = byte(i*31 + k*7)
		}
	}
	return all
}

// receiveSome receives once, drops the packets and returns their number.
func receiveSome(t testing.TB, l Link) int {
	t.Helper()
	n, err := l.Receive(make([]frame.In, 64))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// drain receives until nothing has come for a while.
func drain(t testing.TB, l Link) {
	t.Helper()
	for quiet := 0; quiet < 20; quiet++ {
		if receiveSome(t, l) > 0 {
			quiet = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// socketOf returns the number of the socket that sends for a prepared route.
func socketOf(r *frame.Route) uint16 { return r.Path.(*path).socket }
