package transport

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
)

// wire carries packets from one engine to another without a network, so that
// only the engines are measured.
type wire struct {
	out  []frame.Out
	in   []frame.In
	bufs [][]byte
}

func newWire() *wire {
	w := &wire{out: make([]frame.Out, 128), in: make([]frame.In, 128)}
	for range w.out {
		w.bufs = append(w.bufs, make([]byte, MaxMTU+128))
	}
	return w
}

// carry moves every packet that one host has to send to the other, laid out as a receive buffer would hold it, and
// returns their number.
func (w *wire) carry(now clock.Time, from, to *host) int {
	total := 0
	for {
		n := from.turn(now, w.out)
		if n == 0 {
			return total
		}
		w.deliver(now, n, to)
		total += n
	}
}

// deliver passes the first n packets to a host.
func (w *wire) deliver(now clock.Time, n int, to *host) {
	for i := range w.out[:n] {
		o := &w.out[i]
		b := append(w.bufs[i][:0], o.Head[frame.HeadRoom:o.HeadEnd]...)
		b = append(b, o.Payload...)
		b = b[:len(b)+int(o.Pad)]
		w.in[i] = frame.In{Data: b, Src: o.Route.Src, Dst: o.Route.Dst}
	}
	to.e.Receive(now, w.in[:n])
}

// flow is a connected pair with registered memory and one request that is posted again and again.
type flow struct {
	a, b  *end
	w     *wire
	wr    ring.SendWR
	comps [64]Completion
	now   clock.Time
	recv  bool // the operation consumes receives
	rr    [ring.MaxSGE]ring.SGE
}

// flowDepth is how many reads a flow may have outstanding.
const flowDepth = 16

func newFlow(tb testing.TB, mtu uint32, size int, op ring.WROp) *flow {
	c := defaultConnection()
	c.mtu, c.depth = mtu, flowDepth
	return newFlowOn(tb, c, size, op)
}

func newFlowOn(tb testing.TB, c connection, size int, op ring.WROp) *flow {
	f := &flow{w: newWire()}
	f.a = newHost(tb, nil, "10.0.0.1", Config{}).qp(command.RC, QPConfig{})
	f.b = newHost(tb, nil, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{})
	connect(f.a, f.b, c)
	n := max(size, 8)
	ra, rb := f.a.region(0x10000, make([]byte, n), allowAll), f.b.region(0x90000, make([]byte, n), allowAll)
	f.wr = ring.SendWR{Op: op, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x90000, RKey: rb.Key}
	f.wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: uint32(size), LKey: ra.Key}
	f.recv = takesReceive(op)
	f.rr[0] = ring.SGE{Addr: 0x90000, Length: uint32(size), LKey: rb.Key}
	return f
}

// join puts the pair on the local path.
func (f *flow) join(tb testing.TB) *flow {
	if err := f.a.e.Join(0, f.a.q, f.b.q); err != nil {
		tb.Fatal(err)
	}
	return f
}

// run posts batch requests, carries packets until all of them are complete, and returns the number of packets.
func (f *flow) run(tb testing.TB, batch int) (packets int) {
	for range batch {
		if f.recv {
			f.b.postRecv(ring.RecvWR{NumSGE: 1, SGE: f.rr})
		}
		if err := f.a.send.Post(&f.wr); err != nil {
			tb.Fatal(err)
		}
	}
	f.a.e.Doorbell(f.a.q)
	f.now += 1000
	for done := 0; done < batch; {
		k := f.w.carry(f.now, f.a.host, f.b.host)
		k += f.w.carry(f.now, f.b.host, f.a.host)
		n := f.a.e.Completions(f.comps[:])
		if done += n; k == 0 && n == 0 {
			tb.Fatalf("stuck with %d of %d, state %s", done, batch, stateName(f.a.q.state))
		}
		if f.recv {
			f.b.e.Completions(f.comps[:])
		}
		packets += k
	}
	return packets
}

func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct {
		op    ring.WROp
		mtu   uint32
		size  int
		batch int
		depth uint8 // of reads; where it is more than the usual one, the link sends bursts
	}{
		{ring.OpSend, 1024, 4096, 64, MaxReadAtomic}, {ring.OpRead, 1024, 4096, 64, MaxReadAtomic},
		{ring.OpRead, 4096, 4096, 64, MaxReadAtomic}, {ring.OpWrite, 1024, 64, 32, flowDepth},
		{ring.OpWrite, 4096, 4096, 16, flowDepth}, {ring.OpWrite, 1024, 1 << 20, 1, flowDepth}, {ring.OpWrite, 4096, 1 << 20, 1, flowDepth},
		{ring.OpRead, 1024, 1 << 20, 1, flowDepth}, {ring.OpRead, 4096, 1 << 20, 1, flowDepth},
	} {
		b.Run(fmt.Sprintf("%v/mtu%d/%dB", c.op, c.mtu, c.size), func(b *testing.B) {
			con := defaultConnection()
			con.mtu, con.depth, con.bursts = c.mtu, c.depth, c.depth > flowDepth
			f := newFlowOn(b, con, c.size, c.op)
			packets := 0
			b.SetBytes(int64(c.size * c.batch))
			b.ReportAllocs()
			for b.Loop() {
				packets += f.run(b, c.batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
		})
	}
}

// TestNoAllocations: the data path allocates nothing per packet once it is warm, on the wire and on the local path.
func TestNoAllocations(t *testing.T) {
	for _, op := range []ring.WROp{ring.OpSend, ring.OpWrite, ring.OpRead, ring.OpFetchAdd} {
		for _, size := range []int{64, 1 << 18} {
			for _, local := range []bool{false, true} {
				if op == ring.OpFetchAdd {
					size = 8
				}
				f := newFlow(t, 1024, size, op)
				if local {
					f.join(t)
				}
				f.run(t, 32)
				if n := testing.AllocsPerRun(50, func() { f.run(t, 16) }); n > 0 {
					t.Errorf("%s of %d bytes, local %v: %v allocations in 16 messages", op, size, local, n)
				}
			}
		}
	}
}

// BenchmarkLocal measures the local path beside a plain copy of the same size.
func BenchmarkLocal(b *testing.B) {
	for _, size := range []int{64, 4096, 1 << 20} {
		b.Run(fmt.Sprintf("write/%dB", size), func(b *testing.B) {
			f := newFlow(b, 4096, size, ring.OpWrite).join(b)
			b.SetBytes(int64(16 * size))
			b.ReportAllocs()
			for b.Loop() {
				f.run(b, 16)
			}
		})
		b.Run(fmt.Sprintf("copy/%dB", size), func(b *testing.B) {
			from, to := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(16 * size))
			for b.Loop() {
				for range 16 {
					copy(to, from)
				}
			}
		})
	}
}
