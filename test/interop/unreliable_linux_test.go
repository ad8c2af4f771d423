package interop

import (
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

const (
	burstLength = 40 // messages in a burst
	receives    = 60 // receives posted for it: some messages may arrive twice
	slot        = 4096
	quiet       = 100 * time.Millisecond // a message that has not arrived after this counts as lost, once enough have
)

// burst is a burst of messages under an impairment. Every other message is one packet long; the others have several
// packets, if possible.
type burst struct {
	impairment
	c      *couple
	mem    region
	sizes  [burstLength]int
	header int  // bytes in front of the data at the receiver
	rxeUC  bool // the receiver is rxe's UC
	writes bool // with RDMA writes; after one that lacks a packet, rxe's UC accepts hardly any
}

// sizesOf returns the lengths of the messages of a burst. The long ones have this many packets.
func sizesOf(mtu, packets int) (n [burstLength]int) {
	for k := range n {
		if n[k] = mtu/2 + k; k%2 == 1 {
			n[k] += (packets - 1) * mtu
		}
	}
	return n
}

// single reports whether a message is one packet long.
func (b *burst) single(k int) bool { return b.sizes[k] < b.sizes[0]+burstLength }

// unreliableUnder sends bursts over UC and UD, each way.
func unreliableUnder(t *testing.T, a *adapter, p *peer, f family, mem region, i impairment) {
	const mtu = 1024
	uc := func(name string, toThem bool, run func(b *burst) []int) {
		t.Run("uc/"+name, func(t *testing.T) {
			a.t, p.t = t, t
			c := join(t, a, p, f, plain{typ: verbs.UC, mtu: mtu, psn: 0xfffff0})
			b := &burst{impairment: i, c: c, mem: mem, sizes: sizesOf(mtu, 3), rxeUC: toThem}
			b.judge(run(b))
			c.drop()
		})
	}
	uc("ours", true, func(b *burst) []int { return b.ours(func(*verbs.SendWR) {}) })
	uc("theirs", false, func(b *burst) []int { return b.theirs("op=sendimm") })
	uc("writes/ours", true, (*burst).ourWrites)
	uc("writes/theirs", false, (*burst).theirWrites)
	t.Run("ud", func(t *testing.T) {
		a.t, p.t = t, t
		e := a.end(verbs.UD)
		e.ready(qkey)
		q := p.do("qp type=ud qkey=%d", qkey)
		c := &couple{e, p, q.num(t, "id")}
		p.do("rtr id=%d", c.id)
		p.do("rts id=%d psn=0xffffff", c.id)
		p.do("ah id=%d addr=%s", c.id, f.ours)
		ah, err := a.pd.CreateAH(verbs.AddressVector{Addr: f.theirs})
		ok(t, err)
		b := &burst{impairment: i, c: c, mem: mem, sizes: sizesOf(mtu, 1), header: grh}
		b.judge(b.theirs("op=sendimm qpn=%d qkey=%d", e.qp.Number(), qkey))
		b.judge(b.ours(func(w *verbs.SendWR) { w.AH, w.RemoteQPN, w.RemoteQKey = ah, uint32(q.num(t, "qpn")), qkey }))
		c.drop()
		ok(t, ah.Close())
	})
}

// ours sends a burst to the peer, checks the data of the messages that arrive, and returns their numbers in order of
// arrival. address completes the requests.
func (b *burst) ours(address func(*verbs.SendWR)) (arrived []int) {
	b.c.us.t.Helper()
	b.c.them.do("recv id=%d mr=%d len=%d wr=0 n=%d", b.c.id, b.mem.mr, slot, receives)
	return b.send(verbs.OpSendImm, address, func(wr, k int) int { return wr * slot })
}

// ourWrites writes each message to a place of its own in the peer's memory, with immediate data.
func (b *burst) ourWrites() (arrived []int) {
	b.c.us.t.Helper()
	b.writes = true
	// The initial contents are those of no message: the data of message k has the seed k.
	b.c.them.do("fill mr=%d len=%d n=%d stride=%d seed=%d", b.mem.mr, slot, burstLength, slot, burstLength)
	b.c.them.do("recv id=%d mr=%d len=0 wr=0 n=%d", b.c.id, b.mem.mr, receives)
	address := func(w *verbs.SendWR) {
		w.RemoteAddr, w.RKey = b.mem.addr+w.ID*slot, uint32(b.mem.rkey)
	}
	return b.send(verbs.OpWriteImm, address, func(wr, k int) int { return k * slot })
}

// send sends a burst to the peer, whose receives have been posted, and collects what arrives. place returns where the
// data of message k belongs, which used receive wr.
func (b *burst) send(op verbs.Opcode, address func(*verbs.SendWR), place func(wr, k int) int) (arrived []int) {
	us, them := b.c.us, b.c.them
	us.t.Helper()
	for k, n := range b.sizes {
		fill(us.mr.Bytes()[k*slot:][:n], k)
		w := verbs.SendWR{ID: uint64(k), Op: op, Imm: uint32(k), SGE: []verbs.SGE{us.mr.SGE(k*slot, n)}}
		address(&w)
		us.send(w)
	}
	us.completions(burstLength)
	limit := await.Limit
	if b.certain() == 0 {
		limit = 2 * time.Second
	}
	for certain := b.certain(); ; certain = 1 {
		a := them.do("poll id=%d n=%d timeout=%d quiet=%d least=%d", b.c.id, receives-len(arrived), limit.Milliseconds(),
			quiet.Milliseconds(), certain)
		list := them.completions(a)
		for _, w := range list {
			k := b.number(w.status == wcSuccess, w.imm, int(w.length), w)
			b.mem.check(place(int(w.wr), k)+b.header, b.sizes[k], k)
			arrived = append(arrived, k)
		}
		if len(list) == 0 || b.singles(arrived) >= b.least() {
			return arrived
		}
	}
}

// theirs is ours with the peer sending.
func (b *burst) theirs(how string, args ...any) (arrived []int) {
	us := b.c.us
	us.t.Helper()
	for k := range receives {
		us.recv(uint64(k), us.mr.SGE(k*slot, slot))
	}
	b.theySend(how, args...)
	for _, w := range b.arrivals() {
		k := b.number(w.Op == verbs.CompletedRecv, w.Imm, int(w.ByteLen), w)
		check(us.t, us.mr.Bytes()[int(w.ID)*slot+b.header:][:b.sizes[k]], k)
		arrived = append(arrived, k)
	}
	return arrived
}

// theirWrites has the peer write each message to a place of its own, with immediate data.
func (b *burst) theirWrites() (arrived []int) {
	us := b.c.us
	us.t.Helper()
	clear(us.mr.Bytes()[:burstLength*slot])
	for k := range receives {
		us.recv(uint64(k))
	}
	b.theySend("op=writeimm")
	for _, w := range b.arrivals() {
		k := b.number(w.Op == verbs.CompletedRecvWrite, w.Imm, int(w.ByteLen), w)
		check(us.t, us.mr.Bytes()[k*slot:][:b.sizes[k]], k)
		arrived = append(arrived, k)
	}
	return arrived
}

// theySend has the peer send the burst, one command for as many messages as Soft-RoCE is sure to complete: place, length, data and number
// change from one request to the next.
func (b *burst) theySend(how string, args ...any) {
	us, them := b.c.us, b.c.them
	them.t.Helper()
	them.do("fill mr=%d len=%d n=%d stride=%d", b.mem.mr, slot, burstLength, slot)
	const group = rxeAhead / 2 // every other message has up to 3 packets
	for k := 0; k < burstLength; k += group {
		n := min(group, burstLength-k)
		them.do("send id=%d mr=%d n=%d off=%d stride=%d len=%d grow=1 odd=%d wr=%d imm=%d raddr=%d rkey=%d "+how,
			append([]any{b.c.id, b.mem.mr, n, k * slot, slot, b.sizes[k], b.sizes[1] - b.sizes[0] - 1, 1000 + k, k,
				us.mr.RemoteAddr() + uint64(k*slot), us.mr.RKey()}, args...)...)
		for _, w := range them.poll(b.c.id, n) {
			if w.status != wcSuccess {
				them.t.Fatalf("the peer's completion is %+v", w)
			}
		}
	}
}

// arrivals collects the completions of a burst: first those that are certain to come, then what comes until it is
// quiet, which may also be because somebody had no processor; not before there are enough.
func (b *burst) arrivals() (list []verbs.WC) {
	e := b.c.us
	e.t.Helper()
	var arrived []int
	for {
		limit := quiet
		if len(list) < b.certain() || b.singles(arrived) < b.least() {
			limit = await.Limit
		}
		var wc [1]verbs.WC
		n, err := e.cq.Next(within(e.t, limit), wc[:])
		switch {
		case n == 0 && len(list) < b.certain():
			e.t.Fatalf("%d messages arrive, then %v", len(list), err)
		case n == 0:
			return list
		case wc[0].Status != verbs.Success:
			e.t.Fatalf("our completion is %+v (%v)", wc[0], wc[0].Status)
		}
		list = append(list, wc[0])
		arrived = append(arrived, int(min(wc[0].Imm, burstLength)))
	}
}

// certain returns how many messages arrive in any case. That is all of them if nothing is lost and nothing arrives
// out of turn; but a message of several packets may be broken by a duplicate in between. If a message lacks its end,
// rxe drops the first packet of the next one too.
func (b *burst) certain() int {
	disorder := b.duplicates() || b.reorders()
	switch {
	case b.reorders() && b.rxeUC:
		return 0
	case b.loses(), disorder && b.rxeUC:
		return 1
	case disorder && !b.single(1):
		return burstLength / 2
	}
	return burstLength
}

// number returns to which message of the burst a completion belongs.
func (b *burst) number(good bool, imm uint32, length int, w any) int {
	t := b.c.us.t
	t.Helper()
	if !good || imm >= burstLength || length != b.sizes[imm]+b.header {
		t.Fatalf("a message arrives as %+v", w)
	}
	return int(imm)
}

// judge decides whether a burst may have arrived in this way. A receiver of UC or UD does not remember earlier
// messages (IBA 9.8), so a message of one packet arrives as often as its packet does. One of several packets cannot
// arrive twice, because none of its packets is duplicated in the right place. The order is that of the packets;
// without reordering it is preserved.
func (b *burst) judge(arrived []int) {
	t := b.c.us.t
	t.Helper()
	seen := map[int]int{}
	for at, k := range arrived {
		if seen[k]++; seen[k] > 1 && !(b.single(k) && b.duplicates()) {
			t.Errorf("message %d arrives %d times", k, seen[k])
		}
		if at > 0 && k < arrived[at-1] && !b.reorders() {
			t.Errorf("message %d arrives after %d", k, arrived[at-1])
		}
	}
	if n := b.singles(arrived); n < b.least() {
		t.Errorf("%d messages of one packet arrive, want at least %d", n, b.least())
	}
	t.Logf("%d of %d messages arrive, %d of them again", len(seen), burstLength, len(arrived)-len(seen))
}

// singles returns how many different messages of one packet are among those that have arrived.
func (b *burst) singles(arrived []int) (n int) {
	for k := range b.sizes {
		if b.single(k) && slices.Contains(arrived, k) {
			n++
		}
	}
	return n
}

// least returns how many messages of one packet arrive at least. With the losses of these tests, fewer is no longer bad luck.
func (b *burst) least() int {
	all := 0
	for k := range b.sizes {
		if b.single(k) {
			all++
		}
	}
	switch {
	case b.certain() == 0:
		return 0
	case b.rxeUC && b.writes && b.certain() == 1:
		return 0 // some message must have arrived
	case b.rxeUC && b.certain() == 1:
		return all / 6
	case b.loses():
		return all / 2
	}
	return all
}
