package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// side is one end of a program: its memory, and the memory and completions that a model of the specification expects.
type side struct {
	*end
	peer *side
	rng  *rand.Rand

	source, target, words, arena, wantTarget, wantWords, wantArena []byte
	sourceMR, targetMR, wordsMR, arenaMR                           *memory.Region
	used                                                           int
	slow                                                           bool // some memory is not mapped
	copying                                                        []Copy

	work     []ring.SendWR
	receives []ring.RecvWR
	sent     int
	given    int
	wantSend []ring.CQE
	wantRecv []ring.CQE
	serial   uint64
}

func newSide(x *end, rng *rand.Rand) *side {
	s := &side{end: x, rng: rng, slow: rng.IntN(3) == 0}
	s.source = pattern(sourceLen, byte(rng.Uint32()))
	s.target, s.wantTarget = make([]byte, targetLen), make([]byte, targetLen)
	s.words, s.wantWords = make([]byte, 8*wordCount), make([]byte, 8*wordCount)
	s.sourceMR = s.reach(sourceBase, s.source, memory.LocalWrite|memory.RemoteRead)
	s.targetMR = s.reach(targetBase, s.target, memory.LocalWrite|memory.RemoteWrite|memory.RemoteRead|memory.FlushGlobal)
	s.wordsMR = s.reach(wordBase, s.words, memory.LocalWrite|memory.RemoteAtomic)
	return s
}

// seal allocates the arena once the program's needs are known, and fills in the keys of its work requests.
func (s *side) seal() {
	s.arena = bytes.Repeat([]byte{0xee}, s.used+64)
	want := bytes.Repeat([]byte{0xee}, s.used+64)
	copy(want, s.wantArena)
	s.wantArena = want
	s.arenaMR = s.reach(arenaBase, s.arena, memory.LocalWrite)
	for i := range s.work {
		s.fixKeys(s.work[i].SGE[:s.work[i].NumSGE])
	}
	for i := range s.receives {
		s.fixKeys(s.receives[i].SGE[:s.receives[i].NumSGE])
	}
}

func (s *side) fixKeys(sges []ring.SGE) {
	for i := range sges {
		if sges[i].LKey == 0 {
			sges[i].LKey = s.arenaMR.Key
		}
	}
}

func (s *side) size() int {
	switch s.rng.IntN(20) {
	case 0, 1:
		return 0
	case 2, 3, 4:
		return s.rng.IntN(65537)
	case 5, 6, 7, 8:
		return s.rng.IntN(8192)
	case 9:
		return int(s.q.mtu) * s.rng.IntN(4)
	}
	return s.rng.IntN(600)
}

// gatherFrom picks pieces of the source that make up n bytes.
func (s *side) gatherFrom(n int) (sges [ring.MaxSGE]ring.SGE, count int, data []byte) {
	count = 1 + s.rng.IntN(4)
	left := n
	for i := range count {
		piece := left
		if i < count-1 {
			piece = s.rng.IntN(left + 1)
		}
		off := s.rng.IntN(sourceLen - piece + 1)
		sges[i] = ring.SGE{Addr: sourceBase + uint64(off), Length: uint32(piece), LKey: s.sourceMR.Key}
		data = append(data, s.source[off:off+piece]...)
		left -= piece
	}
	return sges, count, data
}

// scatterTo picks pieces of the arena, with gaps between them, that make up n bytes, and has the model expect data
// there.
func (s *side) scatterTo(n int, data []byte) (sges [ring.MaxSGE]ring.SGE, count int) {
	count = 1 + s.rng.IntN(4)
	left := n
	for i := range count {
		piece := left
		if i < count-1 {
			piece = s.rng.IntN(left + 1)
		}
		s.used += s.rng.IntN(5)
		sges[i] = ring.SGE{Addr: arenaBase + uint64(s.used), Length: uint32(piece)}
		k := min(piece, len(data))
		for len(s.wantArena) < s.used {
			s.wantArena = append(s.wantArena, 0xee)
		}
		s.wantArena = append(s.wantArena, data[:k]...)
		data = data[k:]
		s.used += piece
		left -= piece
	}
	return sges, count
}

// expectRecv adds a receive of room bytes to the peer, with the completion c and the data that the model expects of
// it.
func (s *side) expectRecv(c ring.CQE, data []byte, room int) {
	p := s.peer
	p.serial++
	c.ID, c.QPN, c.Context = p.serial, p.q.num, p.q.context
	c.Flags |= ring.ReceiveSide
	w := ring.RecvWR{ID: p.serial}
	sges, count := p.scatterTo(room, data)
	w.SGE, w.NumSGE = sges, uint32(count)
	p.receives = append(p.receives, w)
	p.wantRecv = append(p.wantRecv, c)
}

// generate adds a random request and what the model expects of it.
func (s *side) generate() {
	s.serial++
	wr := ring.SendWR{ID: s.serial, Op: ring.WROp(1 + s.rng.IntN(8))}
	switch {
	case wr.Op == ring.OpSendInv:
		wr.Op = ring.OpSend
	case s.rng.IntN(5) == 0 && s.q.typ == command.RC:
		wr.Op = ring.OpAtomicWrite + ring.WROp(s.rng.IntN(2))
	}
	if s.rng.IntN(3) > 0 {
		wr.Flags |= ring.Signaled
	}
	if s.rng.IntN(8) == 0 {
		wr.Flags |= ring.Fence
	}
	n := s.size()
	recvFlags := ring.CQFlags(0)
	if s.rng.IntN(3) == 0 && (wr.Op <= ring.OpSendImm || wr.Op == ring.OpWriteImm) {
		wr.Flags |= ring.Solicited
		recvFlags |= ring.IsSolicited
	}
	switch wr.Op {
	case ring.OpRead:
		off := s.rng.IntN(sourceLen - n + 1)
		sges, count := s.scatterTo(n, s.peer.source[off:off+n])
		wr.SGE, wr.NumSGE = sges, uint8(count)
		wr.RemoteAddr, wr.RKey = sourceBase+uint64(off), s.peer.sourceMR.Key
	case ring.OpCompareSwap, ring.OpFetchAdd:
		n = 8
		s.generateAtomic(&wr)
	case ring.OpAtomicWrite:
		n = 8
		off := s.rng.IntN(targetLen/8) * 8
		wr.RemoteAddr, wr.RKey = targetBase+uint64(off), s.peer.targetMR.Key
		copy(s.peer.wantTarget[off:], s.generateData(&wr, n))
	case ring.OpFlush:
		wr.RemoteAddr, wr.RKey, wr.CompareAdd = targetBase, s.peer.targetMR.Key, uint64(min(n, targetLen))
		wr.Access = uint32(ib.PlaceGlobal) | uint32(s.rng.IntN(2))<<4
		n = 0
	default:
		data := s.generateData(&wr, n)
		n = len(data)
		if wr.Op.HasImm() {
			wr.Imm = s.rng.Uint32()
			recvFlags |= ring.HasImm
		}
		op := ring.CQRecv
		if wr.Op == ring.OpWrite || wr.Op == ring.OpWriteImm {
			off := s.rng.IntN(targetLen - n + 1)
			wr.RemoteAddr, wr.RKey = targetBase+uint64(off), s.peer.targetMR.Key
			copy(s.peer.wantTarget[off:], data)
			op = ring.CQRecvWrite
		}
		switch {
		case wr.Op == ring.OpWriteImm:
			s.expectRecv(ring.CQE{Op: op, ByteLen: uint32(n), Imm: wr.Imm, Flags: recvFlags}, nil, 0)
		case wr.Op != ring.OpWrite:
			s.expectRecv(ring.CQE{Op: op, ByteLen: uint32(n), Imm: wr.Imm, Flags: recvFlags}, data, n+s.rng.IntN(2)*s.rng.IntN(100))
		}
	}
	s.work = append(s.work, wr)
	if wr.Flags&ring.Signaled != 0 {
		s.wantSend = append(s.wantSend, ring.CQE{ID: wr.ID, QPN: s.q.num, Context: s.q.context, Op: wr.Op.CQOp(), ByteLen: uint32(n)})
	}
}

func (s *side) generateData(wr *ring.SendWR, n int) []byte {
	if n <= 256 && s.rng.IntN(2) == 0 {
		wr.Flags |= ring.Inline
		wr.Inline = pattern(n, byte(s.rng.Uint32()))
		return wr.Inline
	}
	sges, count, data := s.gatherFrom(n)
	wr.SGE, wr.NumSGE = sges, uint8(count)
	return data
}

func (s *side) generateAtomic(wr *ring.SendWR) {
	w := s.rng.IntN(wordCount)
	b := s.peer.wantWords[8*w:]
	old := binary.NativeEndian.Uint64(b)
	wr.RemoteAddr, wr.RKey = wordBase+uint64(8*w), s.peer.wordsMR.Key
	result := binary.NativeEndian.AppendUint64(nil, old)
	wr.CompareAdd, wr.Swap = s.rng.Uint64(), s.rng.Uint64()
	if wr.Op == ring.OpFetchAdd {
		binary.NativeEndian.PutUint64(b, old+wr.CompareAdd)
	} else if s.rng.IntN(2) == 0 {
		wr.CompareAdd = old
		binary.NativeEndian.PutUint64(b, wr.Swap)
	}
	sges, count := s.scatterTo(8, result)
	wr.SGE, wr.NumSGE = sges, uint8(count)
}

// feed posts a random number of the program's next receives and requests.
func (s *side) feed() {
	for s.given < len(s.receives) && s.given < 200 && s.rng.IntN(4) > 0 {
		s.postRecv(s.receives[s.given])
		s.given++
	}
	for s.sent < len(s.work) && s.rng.IntN(3) > 0 {
		s.post(s.work[s.sent])
		s.sent++
	}
}

func (s *side) done() bool {
	return s.sent == len(s.work) && s.given == len(s.receives) && len(s.comps) >= len(s.wantSend)+len(s.wantRecv) &&
		s.q.req.head == nil
}

// verify compares completions, by queue and in order, and every byte of memory with the model's.
func (s *side) verify() error {
	var sends, recvs []ring.CQE
	for _, c := range s.comps {
		c.Timestamp = 0
		if c.Flags&ring.ReceiveSide != 0 {
			recvs = append(recvs, c.CQE)
		} else {
			sends = append(sends, c.CQE)
		}
	}
	if err := sameCompletions("send", sends, s.wantSend); err != nil {
		return err
	}
	if err := sameCompletions("receive", recvs, s.wantRecv); err != nil {
		return err
	}
	for _, m := range []struct {
		name      string
		got, want []byte
	}{{"target", s.target, s.wantTarget}, {"words", s.words, s.wantWords}, {"arena", s.arena, s.wantArena}} {
		if bytes.Equal(m.got, m.want) {
			continue
		}
		for i := range m.got {
			if m.got[i] != m.want[i] {
				return fmt.Errorf("%s differs at byte %d of %d", m.name, i, len(m.got))
			}
		}
	}
	return nil
}
