package scale

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// Mixed traffic: every operation of RC, in random order and sizes, many at a time, each checked against a model. The
// asking side knows what the serving side's memory must contain; the serving side derives from the number of a
// message what it must be.

const (
	mixDepth   = 16
	mixMessage = 64 << 10      // bytes of the longest message
	mixArea    = 128 << 10     // bytes of the server's memory for writes and reads
	mixWords   = 8             // words behind it, for atomics
	mixServed  = mixArea + 256 // both together
	mixWindows = 32            // windows of the server, each for one send with invalidate
	mixEnd     = 0xffffffff    // immediate data of the last message
)

// mixedArgs returns the sizes of an endpoint for mixed traffic on this many connections.
func mixedArgs(qps int) endpointArgs {
	return endpointArgs{QPs: qps, Depth: mixDepth + mixWindows, Memory: qps * (mixDepth*mixMessage + mixServed)}
}

// servedAt returns where the memory begins that the peer of connection n uses.
func (e *endpoint) servedAt(n int) int { return e.cfg.QPs*mixDepth*mixMessage + n*mixServed }

// buffer returns local memory number i of connection n.
func (e *endpoint) buffer(n, i, size int) (verbs.SGE, []byte) {
	at := (n*mixDepth + i) * mixMessage
	return e.mr.SGE(at, size), e.mr.Bytes()[at : at+size]
}

// message returns what message seq of connection n is: its operation and length.
func message(n int, seq uint32) (op verbs.Opcode, size int) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(seq)))
	op = []verbs.Opcode{verbs.OpSend, verbs.OpSendImm, verbs.OpWriteImm, verbs.OpSendInvalidate}[r.IntN(4)]
	return op, randomSize(r)
}

func randomSize(r *rand.Rand) int {
	switch r.IntN(4) {
	case 0:
		return r.IntN(slot + 1)
	case 1:
		return r.IntN(2 * 4096)
	}
	return r.IntN(mixMessage + 1)
}

// content fills in the bytes of message seq of connection n.
func content(b []byte, n int, seq uint32) {
	x := uint64(n)<<32 | uint64(seq)
	x = x*0x9e3779b97f4a7c15 + 1
	for i := range b {
		b[i] = byte(x >> (8 * (i & 7)))
		if i&7 == 7 {
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
}

// serve answers mixed traffic on all connections until each has ended, and returns how many messages arrived.
func (e *endpoint) serve() (int, error) {
	s := server{e: e, seq: make([]uint32, len(e.conns)), keys: make([][]uint32, len(e.conns))}
	for n := range e.conns {
		for i := range mixDepth {
			if err := s.post(n, i); err != nil {
				return 0, err
			}
		}
		if err := s.offer(n); err != nil {
			return 0, err
		}
	}
	wcs := make([]verbs.WC, 32)
	for ended := 0; ended < len(e.conns); {
		k, err := e.next(wcs)
		if err != nil {
			return s.total, fmt.Errorf("%d connections have not ended: %w", len(e.conns)-ended, err)
		}
		for i := range wcs[:k] {
			last, err := s.take(&wcs[i])
			if err != nil {
				return s.total, fmt.Errorf("connection %d: %w", wcs[i].Context, err)
			}
			if last {
				ended++
			}
		}
	}
	return s.total, nil
}

type server struct {
	e     *endpoint
	seq   []uint32   // messages received, by connection
	keys  [][]uint32 // of the windows that are still bound, in the order of their use
	total int
}

func (s *server) post(n, i int) error {
	sge, _ := s.e.buffer(n, i, mixMessage)
	return s.e.conns[n].qp.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{sge}})
}

// offer binds windows and tells the peer their keys.
func (s *server) offer(n int) error {
	e, q := s.e, s.e.conns[n].qp
	at := e.mr.Addr() + uint64(e.servedAt(n))
	var keys []byte
	for range mixWindows {
		w, err := e.pd.AllocWindow(verbs.WindowType2)
		if err != nil {
			return err
		}
		bind := verbs.Bind{Window: w, MR: e.mr, Addr: at, Length: mixArea, Access: verbs.RemoteRead}
		if err := q.PostSend(&verbs.SendWR{Op: verbs.OpBind, Bind: bind}); err != nil {
			return err
		}
		s.keys[n] = append(s.keys[n], w.RKey())
		keys = binary.BigEndian.AppendUint32(keys, w.RKey())
	}
	at0 := e.servedAt(n)
	copy(e.mr.Bytes()[at0:], keys) // the peer writes to the area only after this
	return q.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(at0, len(keys))}})
}

// take checks a message; last tells whether it was the connection's last.
func (s *server) take(wc *verbs.WC) (last bool, err error) {
	if wc.Status != verbs.Success {
		return false, fmt.Errorf("%v of %v", wc.Status, wc.Op)
	}
	if wc.Flags&verbs.ReceiveSide == 0 {
		return false, nil // completion of the send with the windows' keys
	}
	n := int(wc.Context)
	if wc.Flags&verbs.WithImm != 0 && wc.Imm == mixEnd {
		return true, nil
	}
	peer, seq := s.e.conns[n].peer, s.seq[n]
	s.seq[n]++
	s.total++
	op, size := message(peer, seq)
	if op == verbs.OpSendInvalidate && len(s.keys[n]) == 0 {
		op = verbs.OpSend
	}
	if int(wc.ByteLen) != size {
		return false, fmt.Errorf("message %d: %d bytes, want %d", seq, wc.ByteLen, size)
	}
	switch {
	case op == verbs.OpWriteImm && wc.Op == verbs.CompletedRecvWrite && wc.Imm == seq:
		return false, s.post(n, int(wc.ID))
	case op == verbs.OpSend && wc.Flags&(verbs.WithImm|verbs.WithInvalidated) == 0:
	case op == verbs.OpSendImm && wc.Flags&verbs.WithImm != 0 && wc.Imm == seq:
	case op == verbs.OpSendInvalidate && wc.Flags&verbs.WithInvalidated != 0 && wc.Imm == s.keys[n][0]:
		s.keys[n] = s.keys[n][1:]
	default:
		return false, fmt.Errorf("message %d: %v, flags %b, immediate %#x; want %v", seq, wc.Op, wc.Flags, wc.Imm, op)
	}
	_, got := s.e.buffer(n, int(wc.ID), size)
	want := make([]byte, size)
	content(want, peer, seq)
	if !bytes.Equal(got, want) {
		return false, fmt.Errorf("message %d of %d bytes is not what was sent", seq, size)
	}
	return false, s.post(n, int(wc.ID))
}

// askArgs ask for mixed traffic for some time, and longer on a machine that has not done by then what a test is for.
type askArgs struct {
	Seconds float64
	Seed    uint64
	Least   int    // operations
	While   string // a file: as long as it exists
}

// more reports whether traffic that was to end at a time goes on.
func (a *askArgs) more(end time.Time, operations int) bool {
	now := time.Now()
	if now.Before(end) || now.After(end.Add(await.Limit)) {
		return now.Before(end)
	}
	if operations < a.Least {
		return true
	}
	_, err := os.Stat(a.While)
	return err == nil
}

// asked counts what was done.
type asked struct{ Operations, Messages int }

// ask keeps up mixed traffic on all connections, and checks all of it.
func (e *endpoint) ask(a askArgs) (asked, error) {
	c := client{e: e, rand: rand.New(rand.NewPCG(a.Seed, 1))}
	for n := range e.conns {
		l := &line{n: n, shadow: make([]byte, mixArea)}
		sge, _ := e.buffer(n, 0, mixWindows*4)
		if err := e.conns[n].qp.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{sge}}); err != nil {
			return asked{}, err
		}
		var err error
		if l.window, err = e.pd.AllocWindow(verbs.WindowType2); err != nil {
			return asked{}, err
		}
		c.lines = append(c.lines, l)
	}
	if err := c.greet(); err != nil {
		return asked{}, err
	}
	end := time.Now().Add(time.Duration(a.Seconds * float64(time.Second)))
	for n := range c.lines {
		for i := range mixDepth {
			if err := c.post(c.lines[n], i); err != nil {
				return c.did, err
			}
		}
	}
	wcs := make([]verbs.WC, 32)
	for c.outstanding > 0 {
		k, err := e.next(wcs)
		if err != nil {
			return c.did, fmt.Errorf("%d outstanding: %w", c.outstanding, err)
		}
		more := a.more(end, c.did.Operations)
		for i := range wcs[:k] {
			if err := c.take(&wcs[i], more); err != nil {
				return c.did, fmt.Errorf("connection %d: %w", wcs[i].Context, err)
			}
		}
	}
	return c.did, c.bye()
}

type client struct {
	e           *endpoint
	rand        *rand.Rand
	lines       []*line
	outstanding int
	did         asked
}

// line is one connection, with the model of what the server's memory for it contains.
type line struct {
	n       int
	shadow  []byte
	words   [mixWords]uint64
	keys    []uint32
	seq     uint32
	window  *verbs.MW
	bound   bool
	pending []pending // in the order of posting
	reads   int       // how many of them are reads and atomics
}

// pending is an operation that was posted.
type pending struct {
	op     verbs.Opcode
	buffer int
	want   []byte // what a read must return
}

// greet takes the keys of the server's windows and clears its memory.
func (c *client) greet() error {
	var wcs [1]verbs.WC
	for range c.lines {
		if _, err := c.e.next(wcs[:]); err != nil {
			return fmt.Errorf("greeting: %w", err)
		}
		n := int(wcs[0].Context)
		l := c.lines[n]
		_, b := c.e.buffer(n, 0, int(wcs[0].ByteLen))
		for ; len(b) >= 4; b = b[4:] {
			l.keys = append(l.keys, binary.BigEndian.Uint32(b))
		}
		copy(l.shadow, b[:0])
		for i, k := range l.keys {
			binary.BigEndian.PutUint32(l.shadow[4*i:], k)
		}
	}
	return nil
}

// post posts a random operation that uses local buffer i.
func (c *client) post(l *line, i int) error {
	var wr verbs.SendWR
	p := pending{buffer: i}
	switch k := c.rand.IntN(10); {
	case k < 4:
		c.message(l, i, &wr)
	case k < 6:
		c.write(l, i, &wr)
	case k < 8:
		p.want = c.read(l, i, &wr)
	case k < 9:
		p.want = c.atomic(l, i, &wr)
	default:
		c.bind(l, &wr)
	}
	p.op = wr.Op
	wr.ID, wr.Flags = uint64(i), wr.Flags|verbs.Signaled
	if p.want != nil {
		l.reads++
	}
	l.pending = append(l.pending, p)
	c.outstanding++
	c.did.Operations++
	return c.e.conns[l.n].qp.PostSend(&wr)
}

// fence keeps a write behind earlier reads, which otherwise might see it.
func (l *line) fence() verbs.SendFlags {
	if l.reads > 0 {
		return verbs.Fence
	}
	return 0
}

// target chooses where in the server's area size bytes are written or read.
func (c *client) target(l *line, size int, wr *verbs.SendWR) int {
	at := c.rand.IntN(mixArea - size + 1)
	wr.RemoteAddr = c.remote(l) + uint64(at)
	wr.RKey = c.e.conns[l.n].rkey
	return at
}

// remote returns where the server's memory for this connection begins.
func (c *client) remote(l *line) uint64 {
	k := c.e.conns[l.n]
	return k.addr + uint64(c.e.servedAt(k.peer))
}

func (c *client) message(l *line, i int, wr *verbs.SendWR) {
	var size int
	wr.Op, size = message(l.n, l.seq)
	wr.Imm = l.seq
	if wr.Op == verbs.OpSendInvalidate {
		if len(l.keys) == 0 {
			wr.Op = verbs.OpSend
		} else {
			wr.InvalidateKey, l.keys = l.keys[0], l.keys[1:]
		}
	}
	b := c.local(l, i, size, wr)
	content(b, l.n, l.seq)
	if wr.Op == verbs.OpWriteImm {
		copy(l.shadow[c.target(l, size, wr):], b)
		wr.Flags = l.fence()
	}
	l.seq++
	c.did.Messages++
}

// local gives a request its local memory, sometimes inline if it fits.
func (c *client) local(l *line, i, size int, wr *verbs.SendWR) []byte {
	sge, b := c.e.buffer(l.n, i, size)
	if size > 0 && size <= slot && c.rand.IntN(2) == 0 {
		wr.Inline = b
	} else if size > 0 {
		wr.SGE = []verbs.SGE{sge}
	}
	return b
}

func (c *client) write(l *line, i int, wr *verbs.SendWR) {
	size := randomSize(c.rand)
	wr.Op, wr.Flags = verbs.OpWrite, l.fence()
	b := c.local(l, i, size, wr)
	content(b, c.rand.IntN(1<<20), c.rand.Uint32())
	copy(l.shadow[c.target(l, size, wr):], b)
}

func (c *client) read(l *line, i int, wr *verbs.SendWR) []byte {
	size := 1 + randomSize(c.rand)%mixMessage
	sge, b := c.e.buffer(l.n, i, size)
	clear(b)
	wr.Op, wr.SGE = verbs.OpRead, []verbs.SGE{sge}
	at := c.target(l, size, wr)
	return append([]byte(nil), l.shadow[at:at+size]...)
}

func (c *client) atomic(l *line, i int, wr *verbs.SendWR) []byte {
	sge, b := c.e.buffer(l.n, i, 8)
	clear(b)
	w := c.rand.IntN(mixWords)
	wr.SGE = []verbs.SGE{sge}
	wr.RemoteAddr = c.remote(l) + mixArea + uint64(8*w)
	wr.RKey = c.e.conns[l.n].rkey
	was := l.words[w]
	switch c.rand.IntN(3) {
	case 0:
		wr.Op, wr.Add = verbs.OpFetchAdd, c.rand.Uint64()
		l.words[w] += wr.Add
	case 1:
		wr.Op, wr.Compare, wr.Swap = verbs.OpCompareSwap, was, c.rand.Uint64()
		l.words[w] = wr.Swap
	default:
		wr.Op, wr.Compare, wr.Swap = verbs.OpCompareSwap, ^was, c.rand.Uint64()
	}
	return binary.NativeEndian.AppendUint64(nil, was)
}

func (c *client) bind(l *line, wr *verbs.SendWR) {
	if l.bound {
		wr.Op, wr.InvalidateKey = verbs.OpLocalInvalidate, l.window.RKey()
	} else {
		wr.Op = verbs.OpBind
		wr.Bind = verbs.Bind{Window: l.window, MR: c.e.mr, Addr: c.e.mr.Addr(), Length: 4096, Access: verbs.RemoteRead}
	}
	l.bound = !l.bound
}

// take checks a completion, and posts another operation in its place.
func (c *client) take(wc *verbs.WC, more bool) error {
	l := c.lines[wc.Context]
	p := l.pending[0]
	l.pending = l.pending[1:]
	c.outstanding--
	if wc.Status != verbs.Success {
		return fmt.Errorf("%v: %v", p.op, wc.Status)
	}
	if int(wc.ID) != p.buffer {
		return fmt.Errorf("completion of buffer %d, want %d: out of order", wc.ID, p.buffer)
	}
	if p.want != nil {
		l.reads--
		if _, got := c.e.buffer(l.n, p.buffer, len(p.want)); !bytes.Equal(got, p.want) {
			return fmt.Errorf("%v of %d bytes found something else than was written", p.op, len(p.want))
		}
	}
	if !more {
		return nil
	}
	return c.post(l, p.buffer)
}

// bye tells the server that the connections are done.
func (c *client) bye() error {
	var wcs [1]verbs.WC
	for _, k := range c.e.conns {
		if err := k.qp.PostSend(&verbs.SendWR{Op: verbs.OpSendImm, Flags: verbs.Signaled, Imm: mixEnd}); err != nil {
			return err
		}
	}
	for range c.e.conns {
		if _, err := c.e.next(wcs[:]); err != nil || wcs[0].Status != verbs.Success {
			return fmt.Errorf("last message: %v %v", wcs[0].Status, err)
		}
	}
	return nil
}
