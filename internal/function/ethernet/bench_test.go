package ethernet

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// sinkHost is a host that looks at nothing.
type sinkHost struct{ packets, sent int }

func (s *sinkHost) Indicate(_ clock.Time, _ int, list []Packet) int {
	s.packets += len(list)
	return len(list)
}
func (s *sinkHost) Sent(_ clock.Time, _, n int)  { s.sent += n }
func (s *sinkHost) Raised(_ clock.Time, _ Event) {}

// carrier is a wire that takes large frames, or none.
type carrier bool

func (c carrier) TakesLarge(eth.MAC, uint16) bool { return bool(c) }
func (carrier) Encloses(eth.MAC, int) bool        { return false }
func (carrier) Priority([]byte) uint8             { return 0 }

func benchFunction(b testing.TB, change ...func(*Config)) (*Function, *sinkHost) {
	s := &sinkHost{}
	f, err := New(plain(macB, change...), s)
	if err != nil {
		b.Fatal(err)
	}
	return f, s
}

// batch is how many frames a link hands over at once.
const batch = 32

// receives returns a batch of frames of different flows, and a function that restores what a turn has changed in them.
func receives(x flow, flows, size int) (in []frame.In, restore func()) {
	in = make([]frame.In, batch)
	frames := make([][]byte, batch)
	for i := range in {
		y := x
		y.src = netip4(y.src, uint16(4000+i%flows))
		y.sequence = uint32(i / flows * size)
		frames[i] = y.frame(counting(size))
		in[i] = frame.In{Data: append([]byte(nil), frames[i]...), Raw: true}
	}
	return in, func() {
		for i := range in {
			copy(in[i].Data[:min(66, len(in[i].Data))], frames[i])
		}
	}
}

// BenchmarkReceive measures the way of a frame from a wire to its host, filtered, hashed, checked and coalesced.
func BenchmarkReceive(b *testing.B) {
	for _, c := range []struct {
		name        string
		flow        flow
		flows, size int
		change      func(c *Config)
	}{
		{"UDP64", tcpFlow().udp(), batch, 22, func(*Config) {}},
		{"UDP64/noChecksums", tcpFlow().udp(), batch, 22, func(c *Config) { c.IPChecksumIPv4, c.TCPUDPChecksumIPv4 = 0, 0 }},
		{"UDP64/moderated", tcpFlow().udp(), batch, 22, func(c *Config) { c.InterruptModeration, c.RxIntModeration, c.RxPacketCount = 1, 1, 1000 }},
		{"TCP1460", tcpFlow(), 1, 1460, func(*Config) {}},
		{"TCP1460/noRSC", tcpFlow(), 1, 1460, func(c *Config) { c.RscIPv4 = 0 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, _ := benchFunction(b, c.change)
			in, restore := receives(c.flow, c.flows, c.size)
			b.ReportAllocs()
			now := clock.Time(0)
			for b.Loop() {
				f.Receive(now, in)
				now += 10000
				f.Advance(now)
				restore()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/frame")
		})
	}
}

// BenchmarkSend measures the way of a frame from its host to the port.
func BenchmarkSend(b *testing.B) {
	large := tcpFlow()
	large.unfinished = true
	for _, c := range []struct {
		name   string
		send   Send
		wire   carrier
		frames int
	}{
		{"64", Send{Frame: tcpFlow().udp().frame(counting(22))}, false, 1},
		{"1514", Send{Frame: tcpFlow().frame(counting(1460))}, false, 1},
		{"1514/checksum", Send{Frame: large.frame(counting(1460)), Task: offload.Task{Sums: offload.MakeTransport}}, false, 1},
		{"64000/unsplit", Send{Frame: large.frame(counting(63900)), Task: offload.Task{Kind: offload.TCPv4, Segment: 1460}}, true, 1},
		{"64000/split", Send{Frame: large.frame(counting(63900)), Task: offload.Task{Kind: offload.TCPv4, Segment: 1460}}, false, 44},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, _ := benchFunction(b)
			f.SetWire(c.wire)
			out := make([]frame.Out, 64)
			b.ReportAllocs()
			b.SetBytes(int64(batch * len(c.send.Frame)))
			for b.Loop() {
				for range batch {
					if err := f.Send(0, f.QueueFor(c.send.Frame), &c.send); err != nil {
						b.Fatal(err)
					}
				}
				for f.Transmit(0, 0, out) > 0 {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch*c.frames), "ns/frame")
		})
	}
}

// TestAllocations: neither direction allocates for a frame.
func TestAllocations(t *testing.T) {
	f, host := benchFunction(t, func(c *Config) { c.InterruptModeration, c.RxIntModeration, c.HeaderDataSplit = 1, 1, 1 })
	x := tcpFlow()
	x.tags = []uint16{5 << 13}
	in, restore := receives(x, 4, 500)
	send := Send{Frame: tcpFlow().frame(counting(1000)), Tagged: true, TCI: 5 << 13}
	out := make([]frame.Out, batch)
	now := clock.Time(0)
	turn := func() {
		f.Receive(now, in)
		now += us(100)
		f.Advance(now)
		restore()
		for range batch {
			if err := f.Send(now, f.QueueFor(send.Frame), &send); err != nil {
				t.Fatal(err)
			}
		}
		for f.Transmit(now, 5, out) > 0 {
		}
	}
	for range 100 {
		turn()
	}
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("a turn allocates %v times", n)
	}
	if host.packets == 0 || host.sent == 0 {
		t.Error("nothing was received or sent")
	}
}
