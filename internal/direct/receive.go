package direct

import (
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
)

// send moves a message to a receive posted by the peer.
func (i *Initiator) send(wr *ring.SendWR) reason {
	n, why := i.gather(wr, 0)
	if why != noReason {
		return why
	}
	if why := i.nextReceive(); why != noReason {
		return why
	}
	places, room := 0, uint64(0)
	i.far.start()
	for s := range i.recv.SGE[:i.recv.NumSGE] {
		e := &i.recv.SGE[s]
		if e.Length == 0 || room >= n { // memory that the message does not reach is not looked at
			room += uint64(e.Length)
			continue
		}
		b, why := i.remote(e.LKey, e.Addr, uint64(e.Length), memory.LocalWrite)
		if why != noReason {
			return why
		}
		if room += uint64(e.Length); b != nil {
			i.place[places] = b
			places++
		}
	}
	switch {
	case n > room:
		return tooShort
	case i.far.n == 0:
		i.scatter(n)
	case places > 0:
		return notShared // some of it in segments, and some not
	default:
		if why := i.putFar(n); why != noReason {
			return why
		}
	}
	if n > shortMessage {
		i.recvCQ.Expect()
	}
	e := ring.CQE{Op: ring.CQRecv}
	if wr.Op == ring.OpSendImm {
		e.Imm, e.Flags = wr.Imm, ring.HasImm
	}
	return i.deliver(wr, &e, countSend, n)
}

// scatter copies n bytes of the request's memory to the receive's, the final bytes last.
func (i *Initiator) scatter(n uint64) {
	if n == 0 {
		return
	}
	from, to := 0, 0
	src, dst := i.local[0], i.place[0]
	for {
		k := min(len(src), len(dst))
		if n -= uint64(k); n == 0 {
			i.stride.put(dst[:k], src[:k])
			return
		}
		copy(dst[:k], src[:k])
		if src = src[k:]; len(src) == 0 {
			from++
			src = i.local[from]
		}
		if dst = dst[k:]; len(dst) == 0 {
			to++
			dst = i.place[to]
		}
	}
}

func (i *Initiator) writeImm(wr *ring.SendWR) reason {
	n, why := i.gather(wr, 0)
	if why != noReason {
		return why
	}
	dst, why := i.target(wr, n, memory.RemoteWrite)
	if why != noReason {
		return why
	}
	if why := i.nextReceive(); why != noReason {
		return why
	}
	if why := i.store(dst, n); why != noReason {
		return why
	}
	return i.deliver(wr, &ring.CQE{Op: ring.CQRecvWrite, Imm: wr.Imm, Flags: ring.HasImm}, countWrite, n)
}

// nextReceive looks at the next receive of the peer without taking it.
func (i *Initiator) nextReceive() reason {
	if i.terms.Flags&Receives == 0 {
		return otherRequest
	}
	looks := wait.ReceiveLooks
	if i.waited {
		looks = 1 // it waited in vain: the responder may need this processor
	}
	for range looks {
		if i.receive.Peek(&i.recv) {
			i.waited = false
			return noReason
		}
		if atomic.LoadUint32(&i.dir.Lease) == 0 {
			break // recalled
		}
		if looks > 1 {
			wait.Pause() // each look takes the cache line from the peer that is about to post
		}
	}
	i.waited = true
	return noReceive
}

// deliver takes the receive and completes both sides. The initiator's slot is claimed first, so that an
// answer of the peer cannot overtake its completion. Everything else is prepared before the peer's slot is
// claimed, because a polling peer waits for that very cache line.
func (i *Initiator) deliver(wr *ring.SendWR, e *ring.CQE, op int, n uint64) reason {
	own, why := i.claim(wr)
	if why != noReason {
		return why
	}
	now, c := i.now(SendTimes|RecvTimes), &i.terms
	e.ID, e.Context, e.QPN, e.ByteLen = i.recv.ID, c.PeerContext, c.PeerQPN, uint32(n)
	e.Flags |= ring.ReceiveSide
	if wr.Flags&ring.Solicited != 0 {
		e.Flags |= ring.IsSolicited
	}
	e.PKeyIndex, e.SL, e.Timestamp = c.PKeyIndex, uint8(c.ServiceLevel), now
	peers, ok := i.recvCQ.Claim(i.env.Owner)
	if !ok {
		if i.signaled(wr) {
			i.sendCQ.Cancel(own, i.env.Owner)
			i.raise(i.sendCQ, own, nil, c.Flags&SendChannel != 0, RaiseSend)
		}
		return noCompletion
	}
	// From here until Taken is stored, the claim tells the
	// driver that a receive was taken but not completed.
	taken := i.receive.Take()
	if i.recvCQ.Fill(peers, i.env.Owner, e, c.RecvStamp) {
		i.raise(i.recvCQ, peers, e, c.Flags&RecvChannel != 0, RaiseRecv)
	}
	i.dir.Taken = taken // ordered by Op for the driver, or by the end of this program
	i.tally(op, n)
	if i.signaled(wr) {
		i.fillSend(wr, own, n, now)
	}
	return noReason
}
