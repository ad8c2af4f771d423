package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/frame"
)

// inboxSlots is how many packets may wait for Receive before more are dropped.
const inboxSlots = 512

// inbox is the queue between the goroutines that read sockets and the owner of the link. A slot handed out
// by Receive stays untouched until the next Receive.
type inbox struct {
	mu     sync.Mutex
	slots  []inboxSlot
	order  []int // ring of filled slots
	free   []int
	head   int
	len    int
	out    []int // handed out
	notify func()
	dst    netip.Addr // of every packet

	drops, truncated atomic.Uint64
}

type inboxSlot struct {
	data []byte // one byte longer than any packet, to detect truncation
	n    int
	src  netip.AddrPort
}

func (q *inbox) init(notify func(), dst netip.Addr) {
	memory := make([]byte, inboxSlots*(maxPacket+1))
	q.slots = make([]inboxSlot, inboxSlots)
	q.order = make([]int, inboxSlots)
	q.free = make([]int, inboxSlots)
	q.out = make([]int, 0, inboxSlots)
	for i := range q.slots {
		at := i * (maxPacket + 1)
		q.slots[i].data = memory[at : at+maxPacket+1 : at+maxPacket+1]
		q.free[i] = i
	}
	q.notify, q.dst = notify, dst
}

// readFrom reads one datagram. If every slot is taken the datagram is dropped, as with a full socket
// buffer.
func (q *inbox) readFrom(conn *net.UDPConn) error {
	i, ok := q.take()
	if !ok {
		var none [1]byte
		_, _, err := conn.ReadFromUDPAddrPort(none[:])
		if !errors.Is(err, net.ErrClosed) {
			q.drops.Add(1)
			return nil
		}
		return err
	}
	s := &q.slots[i]
	n, src, err := conn.ReadFromUDPAddrPort(s.data)
	if err != nil || n == 0 || n > maxPacket {
		if n > maxPacket {
			q.truncated.Add(1)
			err = nil
		}
		q.give(i)
		return err
	}
	s.n = n
	s.src = netip.AddrPortFrom(src.Addr().Unmap(), src.Port())
	q.push(i)
	return nil
}

func (q *inbox) take() (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.free)
	if n == 0 {
		return 0, false
	}
	i := q.free[n-1]
	q.free = q.free[:n-1]
	return i, true
}

func (q *inbox) give(i int) {
	q.mu.Lock()
	q.free = append(q.free, i)
	q.mu.Unlock()
}

func (q *inbox) push(i int) {
	q.mu.Lock()
	q.order[(q.head+q.len)%len(q.order)] = i
	q.len++
	wake := q.len == 1
	q.mu.Unlock()
	if wake && q.notify != nil {
		q.notify()
	}
}

// pop hands out packets and takes back those of the previous call.
func (q *inbox) pop(in []frame.In) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free = append(q.free, q.out...)
	q.out = q.out[:0]
	n := min(len(in), q.len)
	for k := range in[:n] {
		i := q.order[q.head]
		q.head = (q.head + 1) % len(q.order)
		q.out = append(q.out, i)
		s := &q.slots[i]
		in[k] = frame.In{Data: s.data[:s.n:s.n], Src: s.src.Addr(), SrcPort: s.src.Port(), Dst: q.dst}
	}
	q.len -= n
	return n
}
