package verbs

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// The counterparts of testdata/exchange.c in Go: the layout of memory, and the contents of messages.
const (
	slot, most, window, places, receives = 20480, 20000, 8, 16, 8

	patternSize = 65536
	atImm       = 0
	atPattern   = atImm + places*slot
	atWrites    = atPattern + patternSize
	atCounters  = atWrites + places*slot
	atRecv      = atCounters + 4096
	atOut       = atRecv + places*slot
	sharedSize  = atOut + window*slot

	heapOut  = places * slot
	heapSize = heapOut + window*slot

	theEnd      = 0x7fffffff
	patternSeed = 77
)

// The kinds of requests.
const (
	kindSend = iota
	kindInline
	kindWriteImm
	kindWrite
	kindReadBack
	kindRead
	kindAdd
	kindSwap
	kinds
	kindEnd
)

func byteOf(seed uint32, number uint64, j int) byte {
	return byte(uint64(seed) + 131*number + 7*uint64(j) + uint64(j>>8))
}

func fillBytes(b []byte, seed uint32, number uint64) {
	for j := range b {
		b[j] = byteOf(seed, number, j)
	}
}

func checkBytes(what string, b []byte, from int, seed uint32, number uint64) error {
	for j := range b {
		if want := byteOf(seed, number, from+j); b[j] != want {
			return fmt.Errorf("%s %d: byte %d of %d is %d, want %d", what, number, j, len(b), b[j], want)
		}
	}
	return nil
}

// whereabouts are what the ends tell each other.
type whereabouts struct {
	qpn, psn, rkey, seed uint32
	base                 uint64
	addr                 netip.Addr
}

func (w whereabouts) line() string {
	gid := w.addr.As16()
	return fmt.Sprintf("at %d %d %d %d %d %s\n", w.qpn, w.psn, w.rkey, w.seed, w.base, hex.EncodeToString(gid[:]))
}

func whereaboutsOf(line string) (w whereabouts, err error) {
	var text string
	if _, err = fmt.Sscanf(line, "at %d %d %d %d %d %s\n", &w.qpn, &w.psn, &w.rkey, &w.seed, &w.base, &text); err != nil {
		return w, err
	}
	gid, err := hex.DecodeString(text)
	if err != nil || len(gid) != 16 {
		return w, fmt.Errorf("GID %q: %v", text, err)
	}
	w.addr = netip.AddrFrom16([16]byte(gid)).Unmap()
	return w, nil
}

// goEnd is an end of an exchange in this process.
type goEnd struct {
	host         *verbs.Host
	cq           *verbs.CQ
	qp           *verbs.QP
	shared, heap *verbs.MR
	me, peer     whereabouts
	rand         *rand.Rand
	failed       error // why it could not connect
	done         chan error

	out                                 [window]goRequest
	requested, finished, sent, received uint64
	adds, swaps, peerAdds, peerSwaps    uint64
	ended, peerEnded                    bool
}

type goRequest struct {
	kind, length, at int
	number           uint64
	memory           []byte
}

func newGoEnd(t *testing.T, socket string, device int, seed uint32) *goEnd {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e := &goEnd{rand: rand.New(rand.NewPCG(uint64(seed), 2)), done: make(chan error, 1)}
	var err error
	e.host, err = verbs.Attach(t.Context(), socket)
	must(err)
	t.Cleanup(func() { _ = e.host.Close() })
	devices, err := e.host.Devices(t.Context())
	must(err)
	d := devices[device]
	pd, err := d.AllocPD()
	must(err)
	e.shared, err = pd.Allocate(sharedSize, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
	must(err)
	e.heap, err = pd.Register(make([]byte, heapSize), verbs.LocalWrite)
	must(err)
	e.cq, err = d.CreateCQ(2 * (window + receives))
	must(err)
	e.qp, err = pd.CreateQP(verbs.QPConfig{
		SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 2 * window, RecvDepth: receives, SendSGE: 2, RecvSGE: 2, Inline: 64,
	})
	must(err)
	fillBytes(e.shared.Bytes()[atPattern:][:patternSize], patternSeed, 0)
	e.me = whereabouts{
		qpn: e.qp.Number(), psn: e.rand.Uint32N(1 << 24), rkey: e.shared.RKey(), seed: seed, base: e.shared.RemoteAddr(), addr: d.Addr(),
	}
	return e
}

func (e *goEnd) line() string { return e.me.line() }

func (e *goEnd) join(at string) { e.failed = e.connect(at) }

func (e *goEnd) joined() {}

func (e *goEnd) begin() {
	go func() { e.done <- e.run() }()
}

func (e *goEnd) wait() error { return <-e.done }

func (e *goEnd) leave() { _ = e.host.Close() }

func (e *goEnd) connect(at string) (err error) {
	if e.peer, err = whereaboutsOf(at); err != nil {
		return err
	}
	if err = e.qp.Modify(verbs.QPAttr{State: verbs.StateInit, Access: verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic},
		verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess); err != nil {
		return err
	}
	if err = e.qp.Modify(verbs.QPAttr{
		State: verbs.StateRTR, AV: verbs.AddressVector{Addr: e.peer.addr}, MTU: 1024, DestQPN: e.peer.qpn, RQPSN: e.peer.psn,
		ResponderResources: 4, MinRNRTimer: 1,
	}, verbs.MaskState|verbs.MaskAV|verbs.MaskMTU|verbs.MaskDestQPN|verbs.MaskRQPSN|verbs.MaskResponderResources|
		verbs.MaskMinRNRTimer); err != nil {
		return err
	}
	if err = e.qp.Modify(verbs.QPAttr{State: verbs.StateRTS, SQPSN: e.me.psn, Timeout: 14, Retry: 7, RNRRetry: 7, InitiatorDepth: 4},
		verbs.MaskState|verbs.MaskSQPSN|verbs.MaskTimeout|verbs.MaskRetry|verbs.MaskRNRRetry|verbs.MaskInitiatorDepth); err != nil {
		return err
	}
	for k := range uint64(receives) {
		if err := e.receive(k); err != nil {
			return err
		}
	}
	return nil
}

func (e *goEnd) run() error {
	if e.failed != nil {
		return e.failed
	}
	var requests uint64
	if _, err := fmt.Sscan(exchangeRequests, &requests); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	for !e.ended || !e.peerEnded || e.finished < e.requested {
		if err := e.turn(ctx, requests); err != nil {
			return err
		}
	}
	counters := e.shared.Bytes()[atCounters:]
	if a, s := binary.LittleEndian.Uint64(counters), binary.LittleEndian.Uint64(counters[8:]); a != e.peerAdds || s != e.peerSwaps {
		return fmt.Errorf("the peer's %d additions and %d exchanges came to %d and %d", e.peerAdds, e.peerSwaps, a, s)
	}
	return nil
}

// turn posts something, and takes what has completed.
func (e *goEnd) turn(ctx context.Context, requests uint64) error {
	if e.requested-e.finished < window-1 && !e.ended {
		kind := e.rand.IntN(kinds)
		switch {
		case e.requested >= requests:
			kind, e.ended = kindEnd, true
		case kind == kindReadBack:
			if err := e.post(kindWrite); err != nil {
				return err
			}
		}
		if err := e.post(kind); err != nil {
			return err
		}
	}
	var wc [4]verbs.WC
	n, err := e.cq.Poll(wc[:])
	if n == 0 && err == nil && (e.ended || e.requested-e.finished >= window-1) {
		n, err = e.cq.Next(ctx, wc[:])
	}
	if err != nil {
		return fmt.Errorf("requested %d, finished %d, received %d: %w", e.requested, e.finished, e.received, err)
	}
	for i := range wc[:n] {
		if err := e.completed(&wc[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *goEnd) completed(wc *verbs.WC) error {
	if wc.Status != verbs.Success {
		return fmt.Errorf("%v: %v", wc.Op, wc.Status)
	}
	if wc.ID&1 != 0 {
		return e.receiveDone(wc)
	}
	return e.requestDone(wc)
}

// memory returns a place in one of the regions.
func (e *goEnd) memory(heap bool, shared, own int) (*verbs.MR, int) {
	if heap {
		return e.heap, own
	}
	return e.shared, shared
}

// inHeap tells whether a place is in the program's own memory: in every fourth block of 1024 numbers every fourth
// place.
func inHeap(number uint64) bool { return number/1024%4 == 0 && number%4 == 3 }

func (e *goEnd) receivePlace(k uint64) (*verbs.MR, int) {
	at := int(k%places) * slot
	return e.memory(inHeap(k), atRecv+at, at)
}

func (e *goEnd) receive(k uint64) error {
	mr, at := e.receivePlace(k)
	return e.qp.PostRecv(&verbs.RecvWR{ID: k<<1 | 1, SGE: []verbs.SGE{mr.SGE(at, 1000), mr.SGE(at+1000, slot-1000)}})
}

func (e *goEnd) size() int { return e.rand.IntN([]int{9, 100, 4100, most + 1}[e.rand.IntN(4)]) }

func (e *goEnd) post(kind int) error {
	n := int(e.requested % window)
	mr, place := e.memory(kind < kindAdd && inHeap(e.requested), atOut+n*slot, heapOut+n*slot)
	r := goRequest{kind: kind, length: e.size(), number: e.requested, memory: mr.Bytes()[place:][:slot]}
	wr := verbs.SendWR{ID: e.requested << 1, Flags: verbs.Signaled, RKey: e.peer.rkey}
	message := func() {
		r.number = e.sent
		wr.Imm = uint32(e.sent)
		fillBytes(r.memory[:r.length], e.me.seed, e.sent)
		e.sent++
	}
	switch kind {
	case kindSend:
		wr.Op = verbs.OpSend
		message()
	case kindInline:
		wr.Op = verbs.OpSendImm
		r.length %= 60
		message()
		wr.Inline = r.memory[:r.length]
	case kindWriteImm:
		wr.Op = verbs.OpWriteImm
		r.at = atImm + int(e.sent%places)*slot
		message()
	case kindWrite:
		wr.Op = verbs.OpWrite
		r.at = atWrites + int(e.requested%places)*slot
		fillBytes(r.memory[:r.length], e.me.seed, e.requested)
	case kindReadBack:
		wr.Op = verbs.OpRead
		r.length = e.out[(n+window-1)%window].length
		r.at = atWrites + int((e.requested-1)%places)*slot
	case kindRead:
		wr.Op = verbs.OpRead
		r.at = atPattern + e.rand.IntN(patternSize-r.length+1)
	case kindAdd:
		wr.Op, wr.Add = verbs.OpFetchAdd, 1
		r.length, r.at, r.number = 8, atCounters, e.adds
		e.adds++
	case kindSwap:
		wr.Op, wr.Compare, wr.Swap = verbs.OpCompareSwap, e.swaps, e.swaps+1
		r.length, r.at, r.number = 8, atCounters+8, e.swaps
		e.swaps++
	case kindEnd:
		wr.Op, wr.Imm = verbs.OpSendImm, theEnd
		wr.Inline = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, e.adds), e.swaps)
		e.sent++
	}
	wr.RemoteAddr = e.peer.base + uint64(r.at)
	if wr.Inline == nil {
		first := r.length
		if kind < kindAdd {
			first = e.rand.IntN(r.length + 1)
		}
		for _, p := range [][2]int{{0, first}, {first, r.length - first}} {
			if p[1] > 0 {
				wr.SGE = append(wr.SGE, mr.SGE(place+p[0], p[1]))
			}
		}
	}
	e.out[n] = r
	e.requested++
	return e.qp.PostSend(&wr)
}

func (e *goEnd) requestDone(wc *verbs.WC) error {
	if wc.ID>>1 != e.finished {
		return fmt.Errorf("completion of request %d, want %d", wc.ID>>1, e.finished)
	}
	r := &e.out[e.finished%window]
	e.finished++
	switch r.kind {
	case kindReadBack:
		return checkBytes("what was written and read", r.memory[:r.length], 0, e.me.seed, r.number-1)
	case kindRead:
		return checkBytes("the pattern", r.memory[:r.length], r.at-atPattern, patternSeed, 0)
	case kindAdd, kindSwap:
		if old := binary.LittleEndian.Uint64(r.memory); old != r.number {
			return fmt.Errorf("the value before is %d, want %d", old, r.number)
		}
	}
	return nil
}

func (e *goEnd) receiveDone(wc *verbs.WC) error {
	k := e.received
	e.received++
	if wc.ID>>1 != k {
		return fmt.Errorf("completion of receive %d, want %d", wc.ID>>1, k)
	}
	mr, at := e.receivePlace(k)
	imm := wc.Flags&verbs.WithImm != 0
	switch {
	case imm && wc.Imm == theEnd:
		b := mr.Bytes()[at:]
		e.peerAdds, e.peerSwaps = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		e.peerEnded = true
		return nil
	case imm && wc.Imm != uint32(k):
		return fmt.Errorf("immediate data %d, want %d", wc.Imm, k)
	case wc.Op == verbs.CompletedRecvWrite:
		mr, at = e.shared, atImm+int(k%places)*slot
	}
	err := checkBytes("message", mr.Bytes()[at:][:wc.ByteLen], 0, e.peer.seed, k)
	return errors.Join(err, e.receive(k+receives))
}
