package transport

import (
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestRaw_Priorities: frames of a raw packet queue pair leave at the priority of their tag, or at that which the port says, in the order
// in which they were posted, whether their bytes are at hand or in pieces.
func TestRaw_Priorities(t *testing.T) {
	h := newHost(t, nil, "10.0.0.1", Config{})
	h.e.SetWire(Wire{MAC: eth.MAC{2}, Longest: 1518, Priority: func(b []byte) uint8 { return b[15] >> 5 }})
	a := h.qp(command.RawPacket, QPConfig{})
	for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
		a.modify(command.ModifyQP{Mask: command.MaskState, State: s}, nil)
	}
	mem := make([]byte, 16384)
	r := h.region(0x1000, mem, allowAll)
	want := []uint8{0, 0, 3, 3, 0, 7, 5, 5, 2}
	const size = 100
	for i, p := range want {
		b := mem[i*size:][:size]
		if i%2 == 0 {
			copy(b[12:], []byte{0x81, 0, p << 5, 0}) // by its tag
		} else {
			copy(b[12:], []byte{8, 0, 0, p << 5}) // as the port says
		}
		b[50] = byte(i)
		at := uint64(0x1000 + i*size)
		wr := ring.SendWR{ID: uint64(i), Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1}
		wr.SGE[0] = ring.SGE{Addr: at, Length: size, LKey: r.Key}
		if i >= 5 {
			wr.NumSGE = 2 // not at hand
			wr.SGE[0].Length = 20
			wr.SGE[1] = ring.SGE{Addr: at + 20, Length: size - 20, LKey: r.Key}
		}
		a.post(wr)
	}
	var got []uint8
	var order []byte
	out := make([]frame.Out, 8)
	for turns := 0; h.e.RawPending() != 0 && turns < 100; turns++ {
		for p := range uint8(frame.Priorities) {
			if h.e.RawPending()>>p&1 == 0 {
				continue
			}
			for i := range h.e.TransmitRaw(0, p, out) {
				b := slices.Concat(out[i].Head[out[i].HeadStart:out[i].HeadEnd], out[i].Payload)
				got, order = append(got, p), append(order, b[50])
			}
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(order, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("frames %v left at %v, want %v", order, got, want)
	}
	var comps [16]Completion
	h.e.Transmit(0, 0, out) // which completes the last ones
	n := h.e.Completions(comps[:])
	for i, c := range comps[:n] {
		if c.ID != uint64(i) || c.Status != ring.Success {
			t.Errorf("completion %d is of %d: %v", i, c.ID, c.Status)
		}
	}
	if n != len(want) {
		t.Errorf("%d completions", n)
	}
}

// TestRaw_WaitsForItsPriority: a queue pair whose next frame is of a priority that has no turn holds up no other.
func TestRaw_WaitsForItsPriority(t *testing.T) {
	h := newHost(t, nil, "10.0.0.1", Config{})
	h.e.SetWire(Wire{MAC: eth.MAC{2}, Longest: 1518})
	mem := make([]byte, 4096)
	copy(mem[12:], []byte{0x81, 0, 3 << 5, 0})
	r := h.region(0x1000, mem, allowAll)
	var ends [2]*end
	for i := range ends {
		ends[i] = h.qp(command.RawPacket, QPConfig{})
		for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
			ends[i].modify(command.ModifyQP{Mask: command.MaskState, State: s}, nil)
		}
		wr := ring.SendWR{Op: ring.OpSend, NumSGE: 1}
		wr.SGE[0] = ring.SGE{Addr: 0x1000 + uint64(i)*1000, Length: 100, LKey: r.Key}
		ends[i].post(wr)
	}
	out := make([]frame.Out, 8)
	if n := h.e.TransmitRaw(0, 0, out); n != 1 || h.e.RawPending() != 1<<3 {
		t.Errorf("%d frames left, pending %#x; want that of the other, and priority 3", n, h.e.RawPending())
	}
}
