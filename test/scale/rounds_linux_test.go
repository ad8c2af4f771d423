package scale

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/verbs"
)

// roundArgs ask for Rounds messages on each of the first QPs connections, all with different contents.
type roundArgs struct{ QPs, Rounds int }

// fill writes the content of message number r of connection n, as numbered by its sender.
func fill(b []byte, n, r int) {
	seed := uint64(n)<<32 | uint64(r)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], seed*0x9e3779b97f4a7c15+uint64(i))
	}
	binary.LittleEndian.PutUint32(b, uint32(r))
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
}

// rounds sends requests on all connections, on each the next one when the answer to the last has arrived, and returns
// the seconds until every answer was there. Answers must contain the bytes of their request.
func (e *endpoint) rounds(a roundArgs) (float64, error) {
	sent, got := make([]int, e.cfg.QPs), make([]int, e.cfg.QPs)
	var full []int // connections whose queue had no room for the next request
	next := func(n int) error {
		if sent[n] == a.Rounds {
			return nil // already sent by a later call that found room
		}
		fill(e.sendSlot(n, sent[n]%e.cfg.Depth), n, sent[n])
		err := e.reply(n, sent[n]%e.cfg.Depth)
		if verbs.IsQueueFull(err) {
			full = append(full, n)
			return nil
		}
		sent[n]++
		return err
	}
	start := time.Now()
	for range min(e.cfg.Depth, a.Rounds) {
		for n := range a.QPs {
			if err := next(n); err != nil {
				return 0, err
			}
		}
	}
	want := make([]byte, slot)
	take := func(wc *verbs.WC) error {
		n := int(wc.Context)
		fill(want, n, got[n])
		if b := e.receiveSlot(n, int(wc.ID)); string(b) != string(want) {
			return fmt.Errorf("answer %d holds %x, want %x", got[n], b, want)
		}
		got[n]++
		if err := e.conns[n].qp.PostRecv(e.receive(n, int(wc.ID))); err != nil {
			return err
		}
		return next(n)
	}
	err := e.messages(a.QPs*a.Rounds, take, func() (int, error) {
		late := full
		full = nil
		for _, n := range late {
			if err := next(n); err != nil {
				return 0, err
			}
		}
		return len(full), nil
	})
	return time.Since(start).Seconds(), err
}

// received answers the requests of rounds with their own bytes, and checks every byte and the order.
func (e *endpoint) received(a roundArgs) (struct{}, error) {
	want := make([]byte, slot)
	peer := make([]int, e.cfg.QPs) // the connection's number at the peer
	got := make([]int, e.cfg.QPs)
	type answer struct{ n, slot int }
	var full []answer
	late := map[int]bool{} // connections in full: their later answers must wait too, even if there is room by then
	send := func(r answer) error {
		if !late[r.n] {
			if err := e.reply(r.n, r.slot); !verbs.IsQueueFull(err) {
				return err
			}
		}
		full, late[r.n] = append(full, r), true
		return nil
	}
	take := func(wc *verbs.WC) error {
		n := int(wc.Context)
		b := e.receiveSlot(n, int(wc.ID))
		if got[n] == 0 {
			peer[n] = int(binary.LittleEndian.Uint32(b[4:]))
		}
		if fill(want, peer[n], got[n]); string(b) != string(want) {
			return fmt.Errorf("message %d holds %x, want %x", got[n], b, want)
		}
		got[n]++
		at := (got[n] - 1) % e.cfg.Depth
		copy(e.sendSlot(n, at), b)
		if err := e.conns[n].qp.PostRecv(e.receive(n, int(wc.ID))); err != nil {
			return err
		}
		return send(answer{n, at})
	}
	return struct{}{}, e.messages(a.QPs*a.Rounds, take, func() (int, error) {
		again := full
		full = nil
		clear(late)
		for _, r := range again {
			if err := send(r); err != nil {
				return 0, err
			}
		}
		return len(full), nil
	})
}

// messages takes this many messages. After each batch it calls again, which sends what found no room before and
// returns how much still waits, because the last message may arrive before there is room for its answer.
func (e *endpoint) messages(left int, take func(*verbs.WC) error, again func() (int, error)) error {
	wcs := make([]verbs.WC, 64)
	for full := 0; left > 0 || full > 0; {
		k, err := e.next(wcs)
		if err != nil {
			return fmt.Errorf("%d messages missing, %d unsent: %w", left, full, err)
		}
		for i := range wcs[:k] {
			wc := &wcs[i]
			if wc.Status != verbs.Success {
				return fmt.Errorf("connection %d: %v", wc.Context, wc.Status)
			}
			if wc.Flags&verbs.ReceiveSide == 0 {
				continue
			}
			if wc.ByteLen != slot {
				return fmt.Errorf("connection %d: message of %d bytes", wc.Context, wc.ByteLen)
			}
			if err := take(wc); err != nil {
				return fmt.Errorf("connection %d: %w", wc.Context, err)
			}
			left--
		}
		if full, err = again(); err != nil {
			return err
		}
	}
	return nil
}

// reply sends the contents of a send slot. It asks for a completion so that the queue empties in order.
func (e *endpoint) reply(n, i int) error {
	at := e.cfg.QPs*e.cfg.Depth*slot + (n*e.cfg.Depth+i)*slot
	return e.conns[n].qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(at, slot)}})
}

// receiveSlot and sendSlot return the memory of message i of connection n.
func (e *endpoint) receiveSlot(n, i int) []byte {
	at := (n*e.cfg.Depth + i) * slot
	return e.mr.Bytes()[at : at+slot]
}

func (e *endpoint) sendSlot(n, i int) []byte {
	at := e.cfg.QPs*e.cfg.Depth*slot + (n*e.cfg.Depth+i)*slot
	return e.mr.Bytes()[at : at+slot]
}
