package hostside

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// end is a host's end in memory.
type end struct {
	virtio, paused, up bool
	bursts             bool // it takes bursts of datagrams
	send, got          [][]byte
	room               int // how many more frames it takes; -1: any
	gone               bool
	offered            Offloads
	mtu                int
}

func (e *end) Kind() string               { return "test" }
func (e *end) Queues() int                { return 1 }
func (e *end) SetQueues(int) error        { return nil }
func (e *end) Virtio() bool               { return e.virtio }
func (e *end) Datagrams() bool            { return e.bursts }
func (e *end) Ready() uint64              { return 1 }
func (e *end) Pause(on bool)              { e.paused = on }
func (e *end) Set(_ eth.MAC, n int) error { e.mtu = n; return nil }
func (e *end) Offer(o Offloads) error     { e.offered = o; return nil }
func (e *end) SetLink(up bool)            { e.up = up }
func (e *end) Descriptors() []int         { return nil }
func (e *end) Close() error               { return nil }

func (e *end) Read(_ int, b []byte) int {
	if len(e.send) == 0 {
		return 0
	}
	n := copy(b, e.send[0])
	e.send = e.send[1:]
	return n
}

func (e *end) Write(_ int, pieces [][]byte) Outcome {
	switch {
	case e.gone:
		return Lost
	case e.room == 0:
		return Full
	}
	e.room--
	e.got = append(e.got, bytes.Join(pieces, nil))
	return Taken
}

var macA, macB = eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}

// bed are two hosts at one port.
type bed struct {
	*port.Port
	t    testing.TB
	now  clock.Time
	ends [2]*end
	side [2]*Side
	out  []frame.Out
	left int // frames that left by the wire
}

// newBed returns hosts with virtio headers or without; second says it of the second one, if that is otherwise.
func newBed(t testing.TB, virtio bool, change func(*ethernet.Config), second ...bool) *bed {
	b := &bed{Port: &port.Port{}, t: t, out: make([]frame.Out, 128)}
	w := &port.Wire{}
	for i, mac := range []eth.MAC{macA, macB} {
		if i == 1 && len(second) > 0 {
			virtio = second[0]
		}
		b.ends[i] = &end{virtio: virtio, bursts: virtio, room: -1}
		b.side[i] = New(b.ends[i], nil, nil)
		b.plug(w, b.side[i], mac, change)
	}
	return b
}

// plug gives a side a function at the port.
func (b *bed) plug(w *port.Wire, side *Side, mac eth.MAC, change func(*ethernet.Config)) {
	c := ethernet.Defaults(catalogue.MLX5)
	c.MAC, c.Host, c.InterruptModeration = mac, side.Abilities(), 0
	if change != nil {
		change(&c)
	}
	f, err := ethernet.New(c, side)
	if err == nil {
		err = side.Attach(f)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	side.SetCarrier(true)
	s := b.Attach(f, port.Station{MAC: mac, Kind: port.Ethernet})
	s.Plug(w, netip.Addr{}, nil)
	f.SetWire(s)
}

// turn is a turn of the port. It reports whether there was anything to do.
func (b *bed) turn() bool {
	n := b.side[0].Pull(b.now) + b.side[1].Pull(b.now)
	b.Advance(b.now)
	for range 4 {
		k := b.Transmit(b.now, b.out)
		for i := range b.out[:k] {
			if !b.out[i].Inside {
				b.left++
			}
		}
		n += k
	}
	return n > 0 || b.Deadline() <= b.now
}

func (b *bed) run() {
	for range 1000 {
		if !b.turn() {
			return
		}
	}
	b.t.Fatal("it does not come to rest")
}

// tcp returns a frame from A to B with a TCP packet of n bytes, with a virtio header for a segment size; 0: complete but for its
// checksum.
func tcp(n, segment int) (whole, f []byte) {
	f = make([]byte, eth.EthernetLen+eth.IPv4Len+eth.TCPLen+n)
	h := eth.Ethernet{Dst: macB, Src: macA, Type: eth.TypeIPv4}
	h.Put(f)
	ip := eth.IPv4(f[eth.EthernetLen:][:eth.IPv4Len])
	ip.Encode(0, len(f)-eth.EthernetLen, 1, 64, eth.ProtocolTCP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
	ip.SetChecksum()
	copy(f[34:], []byte{0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 0x10, 1})
	for i := range n {
		f[54+i] = byte(i * 7)
	}
	v := offload.Header{NeedsChecksum: true, ChecksumStart: 34, ChecksumAt: 16}
	if segment > 0 {
		v.Kind, v.Headers, v.Segment = offload.TCPv4, 54, segment
	}
	whole = append(make([]byte, offload.HeaderLen), f...)
	v.Put(whole)
	return whole, f
}

// TestSide_LargeUnsplit: a large packet of one host is that of the other, with its virtio header; no segment is made, and no
// checksum.
func TestSide_LargeUnsplit(t *testing.T) {
	b := newBed(t, true, nil)
	whole, _ := tcp(40000, 1460)
	b.ends[0].send = [][]byte{whole}
	b.run()
	if len(b.ends[1].got) != 1 || !bytes.Equal(b.ends[1].got[0], whole) {
		t.Fatalf("%d frames arrive", len(b.ends[1].got))
	}
	if b.left != 0 || b.side[0].Sending() != 0 || b.side[0].Counters().Finished != 0 {
		t.Errorf("%d frames left, %d are being sent, %+v", b.left, b.side[0].Sending(), b.side[0].Counters())
	}
	if o := b.ends[0].offered; !o.Checksums || !o.Large4 || !o.Large6 || o.LargeSize != 64000 || b.ends[0].mtu != 1500 || !b.ends[0].up {
		t.Errorf("the host is offered %+v, and an MTU of %d", o, b.ends[0].mtu)
	}
}

// TestSide_Guest: a host without virtio headers gets segments with right checksums, whatever the other sends, and sends frames
// that are complete.
func TestSide_Guest(t *testing.T) {
	b := newBed(t, true, nil, false)
	whole, large := tcp(5000, 1460)
	b.ends[0].send = [][]byte{whole}
	b.run()
	var joined []byte
	for _, f := range b.ends[1].got {
		var h eth.Headers
		if h.Parse(f); len(f) > 1514 || offload.Check(&h, f) != offload.GoodIP|offload.GoodTransport {
			t.Errorf("a frame of %d bytes, whose checksums are %b", len(f), offload.Check(&h, f))
		}
		joined = append(joined, f[h.Data:h.End]...)
	}
	if !bytes.Equal(joined, large[54:]) {
		t.Errorf("%d bytes arrive", len(joined))
	}
	_, back := tcp(500, 0)
	copy(back, macA[:])
	copy(back[6:], macB[:])
	var h eth.Headers
	h.Parse(back)
	offload.Make(offload.MakeTransport, &h, back)
	b.ends[1].send = [][]byte{back}
	b.run()
	if len(b.ends[0].got) != 1 || !bytes.Equal(b.ends[0].got[0][offload.HeaderLen:], back) {
		t.Errorf("%d frames arrive from the guest", len(b.ends[0].got))
	}
}

// TestSide_OffloadsOff: with the keys of offloads at 0 the packets are finished for the host before the function has them.
func TestSide_OffloadsOff(t *testing.T) {
	for name, off := range map[string]func(*ethernet.Config){
		"large sends":     func(c *ethernet.Config) { c.LsoV2IPv4 = 0 },
		"checksums":       func(c *ethernet.Config) { c.TCPUDPChecksumIPv4 = 0 },
		"few segments":    func(c *ethernet.Config) { c.LSOMinSegment = 32 },
		"longer than LSO": func(c *ethernet.Config) { c.LSOSize = 3000 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, true, func(c *ethernet.Config) { off(c); c.RscIPv4 = 0 })
			whole, f := tcp(5000, 1000)
			short, _ := tcp(100, 0)
			b.ends[0].send = [][]byte{whole, short}
			b.run()
			var joined []byte
			for _, g := range b.ends[1].got {
				var h eth.Headers
				v, p, err := offload.ParseHeader(g)
				if err != nil || !h.Parse(p) {
					t.Fatal(err)
				}
				if v.Kind != offload.Whole || !v.NeedsChecksum && offload.CheckTransport(&h, p) != offload.GoodTransport {
					t.Errorf("%+v", v)
				}
				joined = append(joined, p[h.Data:h.End]...)
			}
			if len(b.ends[1].got) != 6 || !bytes.Equal(joined[:5000], f[54:]) || len(joined) != 5100 {
				t.Errorf("%d frames with %d bytes arrive", len(b.ends[1].got), len(joined))
			}
			if b.side[0].Counters().Finished == 0 || b.side[0].Sending() != 0 {
				t.Errorf("%+v", b.side[0].Counters())
			}
		})
	}
}

// TestSide_BadHeaders: what a host says that cannot be is counted and dropped, and the next frame goes on.
func TestSide_BadHeaders(t *testing.T) {
	b := newBed(t, true, nil)
	good, _ := tcp(100, 0)
	mangled := func(change func(h []byte)) []byte {
		whole, _ := tcp(3000, 1000)
		change(whole)
		return whole
	}
	bad := [][]byte{
		{1, 2, 3},                            // shorter than the header
		mangled(func(h []byte) { h[1] = 3 }), // of no kind
		mangled(func(h []byte) { h[1] = byte(offload.UDP) }),                                         // not offered
		mangled(func(h []byte) { h[1] = byte(offload.TCPv6) }),                                       // but it is IPv4
		mangled(func(h []byte) { h[4], h[5] = 0, 0 }),                                                // segments of 0 bytes
		mangled(func(h []byte) { h[1] = 0; binary.LittleEndian.PutUint16(h[6:], 60000) }),            // a sum behind the end
		mangled(func(h []byte) { h[1] = 0; binary.LittleEndian.PutUint16(h[6:], 2) }),                // in the Ethernet header
		mangled(func(h []byte) { h[offload.HeaderLen+eth.EthernetLen] = 0x41 }),                      // no IP header
		append(make([]byte, offload.HeaderLen), bytes.Repeat([]byte{7}, largeSize)...)[:largeSize+5], // longer than any
		make([]byte, offload.HeaderLen),                                                              // a header alone
	}
	b.ends[0].send = append(append(bad, good), good)
	b.run()
	c := b.side[0].Counters()
	refused := b.side[0].f.Counters().Refused
	if len(b.ends[1].got) != 2 || c.BadHeaders+refused != uint64(len(bad)) || refused != 1 {
		t.Errorf("%d frames arrive, %+v, %d refused", len(b.ends[1].got), c, refused)
	}
}

// TestSide_HostTakesNothing: what a host does not take waits in the ring, as much as it has room for; the rest is lost and
// counted, and the other host is not held up. When the host takes frames again it gets those.
func TestSide_HostTakesNothing(t *testing.T) {
	b := newBed(t, true, func(c *ethernet.Config) { c.ReceiveBuffers, c.RscIPv4 = 256, 0 })
	b.ends[1].room = 0
	whole, _ := tcp(100, 0)
	for range 2000 {
		b.ends[0].send = append(b.ends[0].send, whole)
	}
	for range 200 {
		b.turn()
	}
	c := b.side[1].f.Counters()
	if len(b.ends[0].send) != 0 || b.side[0].Sending() != 0 || c.NoBuffer != 2000-256 || b.side[1].Counters().Blocked == 0 {
		t.Fatalf("%d are not read, %d lost, %+v", len(b.ends[0].send), c.NoBuffer, b.side[1].Counters())
	}
	if m := b.side[1].f.Memory(); m > 256*1024 {
		t.Errorf("%d bytes wait", m)
	}
	b.ends[1].room = 100
	for range 3 { // the pauses double meanwhile
		b.now = b.now.Add(lastRetry)
		b.turn()
	}
	if len(b.ends[1].got) != 100 {
		t.Errorf("%d frames after there is room for 100", len(b.ends[1].got))
	}
	b.ends[1].gone = true
	b.now = b.now.Add(lastRetry)
	b.turn()
	if n := b.side[1].Counters().Lost; n != 156 {
		t.Errorf("%d are lost on a host that is gone, want 156", n)
	}
}

// TestSide_Flood: a host whose frames do not leave is not read any more once they take as much as NumTcb of the largest, or four
// times as many buffers (and one into which is read), and goes on when they do.
func TestSide_Flood(t *testing.T) {
	for _, n := range []int{1, 16, 64} {
		for _, size := range []int{60000, 30000, 8000} {
			flood(t, n, size)
		}
	}
}

func flood(t *testing.T, n, size int) {
	b := newBed(t, true, func(c *ethernet.Config) { c.NumTcb = n })
	whole, f := tcp(size, 1460)
	read := min((n*largeSize+len(f)-1)/len(f), largeBuffers*n+1)
	for range 500 {
		b.ends[0].send = append(b.ends[0].send, whole)
	}
	for range 20 {
		b.side[0].Pull(b.now) // the port has no turn
	}
	c := b.side[0].Counters()
	if len(b.ends[0].send) != 500-read || c.Paused != 1 || !b.ends[0].paused || c.Read != uint64(read) {
		t.Fatalf("NumTcb %d, frames of %d: %d are not read, %+v", n, size, len(b.ends[0].send), c)
	}
	b.run()
	if len(b.ends[1].got) != 500 || b.ends[0].paused || b.side[0].Sending() != 0 {
		t.Errorf("%d of 500 arrive", len(b.ends[1].got))
	}
}

// TestSide_Tag: a tag that the function takes out is in the frame again for the host, and the places in its virtio header are
// behind it.
func TestSide_Tag(t *testing.T) {
	b := newBed(t, true, func(c *ethernet.Config) { c.VlanID = 5 })
	whole, f := tcp(300, 0)
	b.ends[0].send = [][]byte{whole}
	b.run()
	want := bytes.Clone(f[:macs])
	want = append(want, 0x81, 0, 0, 5)
	want = append(want, f[macs:]...)
	if len(b.ends[1].got) != 1 {
		t.Fatalf("%d frames arrive", len(b.ends[1].got))
	}
	v, got, _ := offload.ParseHeader(b.ends[1].got[0])
	if !bytes.Equal(got, want) || !v.NeedsChecksum || v.ChecksumStart != 38 {
		t.Errorf("%x\nwant %x, %+v", got, want, v)
	}
}

// TestSide_NoAllocation: a frame from host to host allocates nothing.
func TestSide_NoAllocation(t *testing.T) {
	b := newBed(t, true, nil)
	whole, _ := tcp(1000, 0)
	send := [][]byte{whole}
	got := make([][]byte, 0, 8)
	b.ends[1].gone = true // which keeps nothing
	step := func() {
		b.ends[0].send, b.ends[1].got = send, got
		b.turn()
		b.turn()
	}
	step()
	if n := testing.AllocsPerRun(100, step); n > 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// FuzzSide: no frame of a host, and no virtio header, does more than be counted.
func FuzzSide(f *testing.F) {
	large, _ := tcp(3000, 1000)
	short, _ := tcp(30, 0)
	f.Add(large, byte(3))
	f.Add(large, byte(1))
	f.Add(large, byte(7))
	f.Add(append([]byte{1, byte(offload.UDP)}, large[2:]...), byte(3))
	f.Add(short, byte(11))
	f.Add(short[offload.HeaderLen:], byte(0))
	f.Add([]byte{}, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, how byte) {
		virtio := how&1 != 0
		bed := newBed(t, virtio, func(c *ethernet.Config) {
			if how&4 != 0 {
				c.LsoV2IPv4, c.LsoV2IPv6 = 0, 0
			}
			if how&8 != 0 {
				c.TCPUDPChecksumIPv4, c.TCPUDPChecksumIPv6 = 0, 0
			}
		}, how&2 != 0)
		good, _ := tcp(100, 0)
		if !virtio {
			good = good[offload.HeaderLen:]
		}
		if len(b) > 0 {
			bed.ends[0].send = append(bed.ends[0].send, b)
		}
		bed.ends[0].send = append(bed.ends[0].send, good)
		bed.run()
		if n := len(bed.ends[1].got); n < 1 || bed.side[0].Sending() != 0 {
			t.Fatalf("%d frames arrive, %d are being sent", n, bed.side[0].Sending())
		}
	})
}
