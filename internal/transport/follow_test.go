package transport

import (
	"bytes"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// handing is how packets that have arrived are handed to an engine: each by itself the usual way, which follows nothing, each by itself, or
// all that have arrived together.
type handing uint8

const (
	usually handing = iota
	singly
	together
)

// couple is two hosts with two pairs of queue pairs. The test carries their packets, one by one or in batches.
type couple struct {
	how        handing
	a, b       *host
	ends       [2][2]*end // by pair: at a, at b
	memA, memB []byte
	keyA, keyB uint32
	out        []frame.Out
}

const coupleMemory = 16 << 10

// newCouple returns a couple. bursts: the links join packets of one length, and many reads may be outstanding. flow: 1 with credits.
// mapped: the requesters' memory is at hand.
func newCouple(t testing.TB, how handing, bursts bool, flow uint8, mapped bool) *couple {
	c := &couple{how: how, memA: pattern(coupleMemory, 1), memB: pattern(coupleMemory, 2), out: make([]frame.Out, 128)}
	// The window must not change: it grows a little faster where several acknowledgements come together.
	w := congestion.Config{Start: 256, Min: 256, Max: 256}
	c.a, c.b = newHost(t, nil, "10.0.0.1", Config{Window: w}), newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100, Window: w})
	c.keyA, c.keyB = c.a.register(0x10000, c.memA, mapped).Key, c.b.region(0x90000, c.memB, allowAll).Key
	for i := range c.ends {
		c.ends[i] = [2]*end{c.a.qp(command.RC, QPConfig{Context: uint64(i)}), c.b.qp(command.RC, QPConfig{Context: uint64(i)})}
		x := defaultConnection()
		x.mtu, x.psn, x.flow = 256, [2]uint32{0xfffff0, 5000}, flow
		if x.bursts = bursts; bursts {
			x.depth = pairsFrom
		}
		connect(c.ends[i][0], c.ends[i][1], x)
	}
	return c
}

// post posts a request of size bytes and, if it consumes one, a receive of room bytes in two pieces.
func (c *couple) post(pair int, op ring.WROp, at, size, room uint32) {
	if takesReceive(op) {
		var g [ring.MaxSGE]ring.SGE
		first := room / 3
		g[0] = ring.SGE{Addr: 0x90000 + uint64(at), Length: first, LKey: c.keyB}
		g[1] = ring.SGE{Addr: 0x90000 + uint64(at+first), Length: room - first, LKey: c.keyB}
		c.ends[pair][1].postRecv(ring.RecvWR{NumSGE: 2, SGE: g})
	}
	wr := ring.SendWR{Op: op, Flags: ring.Signaled, NumSGE: 2, RemoteAddr: 0x90000 + uint64(at), RKey: c.keyB}
	wr.SGE[0] = ring.SGE{Addr: 0x10000 + uint64(at), Length: size / 2, LKey: c.keyA}
	wr.SGE[1] = ring.SGE{Addr: 0x10000 + uint64(at+size/2), Length: size - size/2, LKey: c.keyA}
	c.ends[pair][0].post(wr)
}

// transmit returns copies of the packets that a host sends.
func (c *couple) transmit(now clock.Time, from *host) (in []frame.In) {
	for n := from.e.Transmit(now, 0, c.out); n > 0; n = from.e.Transmit(now, 0, c.out) {
		for i := range c.out[:n] {
			o := &c.out[i]
			in = append(in, frame.In{Data: flat(o), Src: o.Route.Src, Dst: o.Route.Dst})
		}
		if len(in) > 1000 {
			break
		}
	}
	return in
}

func (c *couple) receive(now clock.Time, to *host, in []frame.In) {
	if c.how == together {
		to.e.Receive(now, in)
		in = nil
	}
	for i := range in {
		if c.how == singly {
			to.e.Receive(now, in[i:i+1])
			continue
		}
		to.e.now = now
		to.e.arrived++
		to.e.receive(now, &in[i])
		to.e.writeGathered()
	}
	to.drain(now)
}

// mangle is a fault for the packet with number at, modulo the number of packets.
type mangle struct {
	at, to int
	how    string
	value  byte
}

var mangles = []string{"drop", "duplicate", "move", "psn", "acknowledge", "queue pair", "partition", "opcode", "solicited", "pad", "cut",
	"source", "apart"}

func (m *mangle) apply(in []frame.In) []frame.In {
	if len(in) == 0 {
		return in
	}
	i := m.at % len(in)
	p := &in[i]
	d := bytes.Clone(p.Data)
	if len(d) < ib.BTHLen {
		return in
	}
	switch m.how {
	case "drop":
		return slices.Delete(in, i, i+1)
	case "duplicate":
		return slices.Insert(in, i, *p)
	case "move":
		moved := *p
		in = slices.Delete(in, i, i+1)
		return slices.Insert(in, m.to%(len(in)+1), moved)
	case "psn":
		ib.BTH(d).SetPSN(ib.BTH(d).PSN().Add(uint32(m.value%5) + ib.PSNMask - 1))
	case "acknowledge":
		d[8] ^= m.value | 1
	case "queue pair":
		if o := in[m.to%len(in)].Data; len(o) >= ib.BTHLen {
			ib.BTH(d).SetDestQP(ib.BTH(o).DestQP())
		}
	case "partition":
		ib.BTH(d).SetPKey(ib.PKey(m.value) | 0x8000)
	case "opcode":
		d[0] = m.value
	case "solicited":
		ib.BTH(d).SetSolicited(true)
	case "pad":
		ib.BTH(d).SetPadCount(int(m.value))
	case "cut":
		d = d[:max(len(d)-4*int(m.value%80), 0)]
	case "source":
		p.Src = in[m.to%len(in)].Dst
	case "apart":
		headers := ib.BTHLen
		switch op := ib.BTH(d).Opcode(); {
		case endsAnswer(op):
			headers += ib.AETHLen
		case !inMiddle(op):
			headers = len(d)
		}
		if headers < len(d) {
			d, p.Payload = d[:headers:headers], d[headers:]
		}
	}
	p.Data = d
	return in
}

// TestBatchesDoWhatTheirPacketsDo: a batch of packets has the same effect as its packets one by one, and these the same as on the
// way of all that continue nothing, also when they were lost, repeated, reordered or damaged on the way: the same memory, counters,
// completions, events and answers.
func TestBatchesDoWhatTheirPacketsDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bursts, flow, mapped := rapid.Bool().Draw(rt, "bursts"), rapid.Uint8Range(0, 1).Draw(rt, "flow control"), rapid.Bool().Draw(rt, "mapped")
		var couples []*couple
		for _, how := range []handing{usually, singly, together} {
			couples = append(couples, newCouple(t, how, bursts, flow, mapped))
		}
		now := clock.Time(1)
		mangling := func(name string) (ms []mangle) {
			for range rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(rt, name) {
				ms = append(ms, mangle{
					rapid.IntRange(0, 199).Draw(rt, "at"), rapid.IntRange(0, 199).Draw(rt, "to"),
					rapid.SampledFrom(mangles).Draw(rt, "how"), rapid.Byte().Draw(rt, "value"),
				})
			}
			return ms
		}
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			for range rapid.IntRange(0, 4).Draw(rt, "posts") {
				pair, op := rapid.IntRange(0, 1).Draw(rt, "pair"),
					rapid.SampledFrom([]ring.WROp{ring.OpWrite, ring.OpWriteImm, ring.OpSend, ring.OpRead, ring.OpRead}).Draw(rt,
						"operation")
				size := uint32(rapid.IntRange(0, 8000).Draw(rt, "size"))
				room := size
				if rapid.IntRange(0, 9).Draw(rt, "receive is short") == 0 {
					room = size / 2
				}
				at := uint32(rapid.IntRange(0, coupleMemory-8000).Draw(rt, "at"))
				for _, c := range couples {
					c.post(pair, op, at, size, room)
				}
			}
			for _, way := range []string{"requests", "answers"} {
				ms := mangling(way)
				var sent [3][]frame.In
				for i, c := range couples {
					from, to := c.a, c.b
					if way == "answers" {
						from, to = to, from
					}
					in := c.transmit(now, from)
					for k := range ms {
						in = ms[k].apply(in)
					}
					sent[i] = slices.Clone(in)
					c.receive(now, to, in)
				}
				for i, c := range couples[1:] {
					same := func(x, y frame.In) bool { return bytes.Equal(x.Data, y.Data) && x.Src == y.Src }
					if !slices.EqualFunc(sent[0], sent[i+1], same) {
						rt.Fatalf("packets sent %s differ between couples %d and 0", way, i+1)
					}
					couples[0].equal(rt, c)
				}
			}
			now += clock.Time(rapid.SampledFrom([]int{1000, 3000000}).Draw(rt, "time"))
			for _, c := range couples {
				c.a.e.Advance(now)
				c.b.e.Advance(now)
			}
		}
	})
}

func (c *couple) equal(t *rapid.T, d *couple) {
	t.Helper()
	if !bytes.Equal(c.memA, d.memA) || !bytes.Equal(c.memB, d.memB) {
		t.Fatal("memory differs")
	}
	for _, h := range [][2]*host{{c.a, d.a}, {c.b, d.b}} {
		if x, y := *h[0].e.Counters(), *h[1].e.Counters(); x != y {
			t.Fatalf("counters %+v and %+v", x, y)
		}
		if !slices.EqualFunc(h[0].comps, h[1].comps, func(x, y Completion) bool { return x.CQE == y.CQE }) {
			t.Fatalf("completions %+v and %+v", h[0].comps, h[1].comps)
		}
		if len(h[0].events) != len(h[1].events) {
			t.Fatalf("events %+v and %+v", h[0].events, h[1].events)
		}
	}
	for i := range c.ends {
		for k := range c.ends[i] {
			x, y := c.ends[i][k].q, d.ends[i][k].q
			if x.state != y.state || x.resp.psn != y.resp.psn || x.resp.msn != y.resp.msn || x.resp.off != y.resp.off ||
				x.resp.write != y.resp.write ||
				x.req.una != y.req.una || x.req.snd != y.req.snd || x.active() != y.active() || x.req.counted != y.req.counted ||
				x.deadlines[retryTimer] != y.deadlines[retryTimer] || x.req.credit != y.req.credit {
				t.Fatalf("queue pairs differ: %+v %+v and %+v %+v", x.resp, x.req, y.resp, y.req)
			}
		}
	}
}
