package transport

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"pgregory.net/rapid"
)

// TestMiddlesAreThePacketsMadeOneByOne: requests and answers to reads that are made many at a time, from mapped
// memory, are the same packets as those made one by one, from memory that is not mapped.
func TestMiddlesAreThePacketsMadeOneByOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 12000).Draw(rt, "size")
		op := rapid.SampledFrom([]ring.WROp{ring.OpWrite, ring.OpWriteImm, ring.OpSend, ring.OpRead}).Draw(rt, "operation")
		typ := rapid.SampledFrom([]command.QPType{command.RC, command.UC}).Draw(rt, "type")
		if op == ring.OpRead {
			typ = command.RC
		}
		cfg := Config{
			MaxBurst: rapid.IntRange(1, 64).Draw(rt, "burst"), MaxBurstBytes: rapid.IntRange(1, 20000).Draw(rt, "bytes"),
		}
		// The window must not change: it grows by what one acknowledgement covers, and answers that are placed
		// together are taken together.
		window := rapid.IntRange(2, 64).Draw(rt, "window")
		cfg.Window = congestion.Config{Start: window, Min: window, Max: window}
		room := rapid.IntRange(1, 128).Draw(rt, "room")
		others, lost := rapid.Bool().Draw(rt, "others in the window"), rapid.IntRange(0, 60).Draw(rt, "lost")
		var sent [2][][]byte
		for i := range sent {
			a, b := newHost(t, nil, "10.0.0.1", cfg), newHost(t, nil, "10.0.0.2", cfg)
			x, y := a.qp(typ, QPConfig{}), b.qp(typ, QPConfig{})
			c := defaultConnection()
			c.mtu, c.psn = 256, [2]uint32{0xfffff0, 0xfffff0}
			connect(x, y, c)
			if others {
				connect(a.qp(typ, QPConfig{}), b.qp(typ, QPConfig{}), c)
			}
			ra := a.register(0x10000, pattern(size+1, 5), i == 0)
			rb := b.register(0x90000, pattern(size+1, 3), i == 0)
			if takesReceive(op) {
				r := ring.RecvWR{NumSGE: 1}
				r.SGE[0] = ring.SGE{Addr: 0x90000, Length: uint32(size), LKey: rb.Key}
				y.postRecv(r)
			}
			wr := ring.SendWR{Op: op, NumSGE: 1, RemoteAddr: 0x90000, RKey: rb.Key}
			wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: uint32(size), LKey: ra.Key}
			x.post(wr)
			sent[i] = exchange(a, b, room, lost)
		}
		if len(sent[0]) != len(sent[1]) {
			rt.Fatalf("%d packets were made together, %d one by one", len(sent[0]), len(sent[1]))
		}
		for k := range sent[0] {
			if !bytes.Equal(sent[0][k], sent[1][k]) {
				rt.Fatalf("packet %d: %x together, %x one by one", k, sent[0][k], sent[1][k])
			}
		}
	})
}

// register registers b as mapped memory, or as memory that is reached by calls.
func (h *host) register(base uint64, b []byte, mapped bool) *memory.Region {
	if mapped {
		return h.region(base, b, allowAll)
	}
	r, err := h.mem.Register(memory.Region{PD: testPD, Base: base, Length: uint64(len(b)), Access: allowAll,
		Remote: &owner{base: base, bytes: b}})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// exchange carries packets both ways, at most room of them a turn, and loses the one with number lost. It returns all
// packets sent.
func exchange(a, b *host, room, lost int) (sent [][]byte) {
	now, out := clock.Time(1), make([]frame.Out, room)
	for quiet := 0; quiet < 3 && len(sent) < 1000; quiet++ {
		for _, way := range [][2]*host{{a, b}, {b, a}} {
			n := way[0].e.Transmit(now, 0, out)
			var in []frame.In
			for i := range out[:n] {
				quiet = 0
				o := &out[i]
				sent = append(sent, flat(o))
				if len(sent) != lost {
					in = append(in, frame.In{Data: flat(o), Src: o.Route.Src, Dst: o.Route.Dst})
				}
			}
			way[1].e.Receive(now, in)
			way[1].drain(now)
		}
		if quiet == 1 { // nothing is sent any more: let the timers end
			now += 100_000_000
			a.e.Advance(now)
			b.e.Advance(now)
		}
	}
	return sent
}
