package udp

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

const (
	placedQP = 0x2a // the QP of packets
	otherQP  = 0x2b
	middle   = uint8(ib.RCWriteMiddle)
)

// stream is what a sender sends, in order.
type stream struct {
	payloads [][]byte
	opcodes  []uint8
	qps      []byte
	psns     []uint32
}

// draw makes bursts: of the packets of a message of whole packets from PSN first on, whose
// payloads are all in message, with others before, between and behind them.
func (s *stream) draw(t *rapid.T, message []byte, size int, first uint32) {
	next := 0
	add := func(op uint8, qp byte, psn uint32, payload []byte) {
		s.opcodes, s.qps = append(s.opcodes, op), append(s.qps, qp)
		s.psns, s.payloads = append(s.psns, (first+psn)&ib.PSNMask), append(s.payloads, payload)
	}
	for next*size < len(message) {
		n := min(rapid.IntRange(1, 20).Draw(t, "packets in a row"), len(message)/size-next)
		for range n {
			add(middle, placedQP, uint32(next), message[next*size:][:size])
			next++
		}
		switch rapid.IntRange(0, 7).Draw(t, "then") {
		case 0:
			add(uint8(ib.RCAcknowledge), placedQP, 7, make([]byte, 4))
		case 1: // another QP
			for i := range rapid.IntRange(1, 20).Draw(t, "packets of another") {
				add(middle, otherQP, uint32(next+i), bytes.Repeat([]byte{0xee}, size))
			}
		case 2: // sent again
			from := rapid.IntRange(0, next-1).Draw(t, "duplicates from")
			for i := range min(next-from, 20) {
				add(middle, placedQP, uint32(from+i), bytes.Repeat([]byte{0xdd}, size))
			}
		case 3: // ahead of its turn
			for i := range rapid.IntRange(1, 20).Draw(t, "packets ahead") {
				add(middle, placedQP, uint32(next+1+i), bytes.Repeat([]byte{0xaa}, size))
			}
		case 4: // the last packet of a message, and the first of another
			add(uint8(ib.RCWriteLast), otherQP, 0, make([]byte, 4*rapid.IntRange(0, size/4).Draw(t, "last")))
			add(uint8(ib.RCWriteFirst), otherQP, 1, make([]byte, size+ib.RETHLen))
		}
	}
}

// frames makes them packets to a route.
func (s *stream) frames(r *frame.Route, l Link) []frame.Out {
	all := packets(r, l.Capabilities(), s.payloads...)
	for i := range all {
		bth := all[i].Head[frame.HeadRoom : frame.HeadRoom+ib.BTHLen]
		bth[0], bth[7] = s.opcodes[i], s.qps[i]
		binary.BigEndian.PutUint32(bth[8:], s.psns[i])
	}
	return all
}

// Whatever comes where packets are expected, every packet is handed out as it was sent,
// and the expected ones, moved to where they belong in the order of Receive, are whole,
// with nothing written beside their memory (link.Placer).
func TestReceiveInPlace(t *testing.T) {
	for _, v := range []variant{{"v4", false, Config{}}, {"v6", true, Config{}}, {"batch of one", false, Config{Batch: 1}}} {
		t.Run(v.name, func(t *testing.T) {
			a, b := v.open(t), v.open(t)
			placer, ok := b.(*socketLink)
			if !ok || !placer.gro {
				t.Skip("this kernel coalesces no datagrams")
			}
			r := routeTo(t, a, b)
			rapid.Check(t, func(t *rapid.T) {
				const guard = 8192
				size := rapid.SampledFrom([]int{2048, 4096}).Draw(t, "size")
				n := rapid.IntRange(1, 60).Draw(t, "packets")
				first := rapid.SampledFrom([]uint32{0, 1000, 0xffffff - 20}).Draw(t, "first PSN")
				message := payloadsOf(1, n*size)[0]
				memory := bytes.Repeat([]byte{0x55}, guard+len(message)+guard)
				var s stream
				s.draw(t, message, size, first)
				frames := s.frames(r, a)
				p := placing{link: placer, memory: memory[guard : guard+len(message)], size: size, first: first}
				p.exchange(t, a, frames, rapid.IntRange(1, 300).Draw(t, "room"))
				if !bytes.Equal(p.memory, message) {
					t.Fatal("the message differs")
				}
				for _, side := range [][]byte{memory[:guard], memory[guard+len(message):]} {
					if !bytes.Equal(side, bytes.Repeat([]byte{0x55}, guard)) {
						t.Fatal("something was written beside the memory of what was expected")
					}
				}
			})
			if placer.stats.ReceivedPlaced == 0 {
				t.Error("nothing was received in place")
			}
		})
	}
}

// placing is the owner of a link in the middle of a message.
type placing struct {
	link   *socketLink
	memory []byte
	size   int
	first  uint32
	next   int // packet of the message that is next in order
	in     []frame.In
}

func (p *placing) exchange(t *rapid.T, from Link, frames []frame.Out, room int) {
	p.in = make([]frame.In, room)
	deadline := time.Now().Add(10 * time.Second)
	for sent, got := 0, 0; got < len(frames); {
		if sent-got < 200 && sent < len(frames) {
			n, err := from.Send(frames[sent:min(len(frames), sent+150)])
			if err != nil {
				t.Fatal(err)
			}
			sent += n
		}
		p.link.Expect(&frame.Expected{Opcode: middle, QPN: placedQP, PSN: (p.first + uint32(p.next)) & ib.PSNMask,
			Size: p.size, Memory: p.memory[p.next*p.size:]})
		n, err := p.link.Receive(p.in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.in[:n] {
			p.take(t, &p.in[i], &frames[got+i])
		}
		if got += n; n == 0 {
			runtime.Gosched()
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d packets arrived; stats %+v", got, len(frames), p.link.Stats())
			}
		}
	}
}

func (p *placing) take(t *rapid.T, in *frame.In, sent *frame.Out) {
	packet := in.Data
	if in.Payload != nil {
		packet = append(append(bytes.Clone(in.Data[:ib.BTHLen]), in.Payload...), in.Data[ib.BTHLen:]...)
		at := uintptr(unsafe.Pointer(&in.Payload[0])) - uintptr(unsafe.Pointer(unsafe.SliceData(p.memory)))
		if at >= uintptr(len(p.memory)) {
			t.Fatal("a payload is not in the memory of what was expected")
		}
	}
	if !bytes.Equal(packet, packetBytes(sent)) {
		t.Fatalf("packet % x of %d bytes, want % x of %d", packet[:ib.BTHLen], len(packet), packetBytes(sent)[:ib.BTHLen], sent.Len())
	}
	bth := ib.BTH(packet[:ib.BTHLen])
	turn := uint32(bth.PSN()) == (p.first+uint32(p.next))&ib.PSNMask
	if uint8(bth.Opcode()) != middle || bth.DestQP() != placedQP || !turn || p.next*p.size == len(p.memory) {
		return
	}
	copy(p.memory[p.next*p.size:][:p.size], packet[ib.BTHLen:])
	p.next++
}
