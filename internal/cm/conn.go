package cm

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/mad"
)

// conn is the engine's state of an id.
type conn struct {
	id      ID
	state   state
	space   command.PortSpace
	context uint64

	active    bool // this side sent the request
	claimed   bool // the program has it; always true if the program created it
	destroyed bool // the program has released it
	told      bool // EventDisconnected has been raised
	queued    bool // in the send queue
	lowerMTU  bool // the request was repeated with a smaller MTU
	flow      bool // this side's end-to-end flow control bit
	peerFlow  bool // the peer's
	failover  bool // the peer proposed an alternate path
	again     bool // the peer has repeated its request
	byPeer    bool // in Engine.peers; the fields of its key do not change then
	byQPN     bool // in Engine.qpns, likewise

	remoteID   uint32
	remoteGUID uint64
	tid        uint64 // of the message that waits for an answer
	reqTID     uint64 // of the peer's request
	local      netip.AddrPort
	remote     netip.AddrPort
	attr       Attributes
	at         Peer // where its messages go
	bind       BindOptions
	binding    *binding
	listener   *conn // while unclaimed
	listen     *listenState

	// The message that is repeated until it is answered, or when a duplicate arrives.
	message    *[mad.Len]byte
	rtu        *[mad.RTUPrivateData]byte // private data of RTU; nil for none
	retries    uint8                     // left
	maxRetries uint8
	interval   time.Duration
	pace       time.Duration // of DREQ: time given to the last one, up to interval

	askedAt clock.Time // when the message was first sent, or the end of the time that the peer asked for with MRA
	retryAt clock.Time // next retransmission; Never if none
	expires clock.Time // end of the attempt, of the request's life, of time-wait
	due     clock.Time // the earlier of both, as used by the timer heap
	timer   int        // index in the timer heap plus one; 0 if none
}

// listenState is the additional state of a listener.
type listenState struct {
	backlog int
	waiting map[ID]*conn // requests not claimed yet
	shares  shares       // of the waiting requests
	line    line         // of the waiting requests
}

// peerKey identifies a request as its sender does. The address is part of it: a peer must not be able to
// refer to another's connections.
type peerKey struct {
	addr netip.Addr
	guid uint64
	id   uint32
	sidr bool
}

// qpnKey identifies a QP of a peer.
type qpnKey struct {
	addr netip.Addr
	guid uint64
	qpn  uint32
}

// peerKey returns the key of a connection that its peer requested.
func (c *conn) peerKey() peerKey {
	return peerKey{addr: c.at.Remote, guid: c.remoteGUID, id: c.remoteID, sidr: c.space == command.UDP}
}

// qpnKey returns the key of the peer's QP.
func (c *conn) qpnKey() qpnKey { return qpnKey{c.at.Remote, c.remoteGUID, c.attr.RemoteQPN} }

// timers is a binary heap of connections by due; the earliest is first.
type timers []*conn

// set moves c to its place after retryAt or expires changed.
func (t *timers) set(c *conn) {
	due := clock.Min(c.retryAt, c.expires)
	if due == clock.Never {
		t.remove(c)
		return
	}
	c.due = due
	if c.timer == 0 {
		*t = append(*t, c)
		c.timer = len(*t)
	}
	t.down(t.up(c.timer - 1))
}

func (t *timers) remove(c *conn) {
	if c.timer == 0 {
		return
	}
	i, last := c.timer-1, len(*t)-1
	t.swap(i, last)
	(*t)[last] = nil
	*t = (*t)[:last]
	c.timer = 0
	if i < last {
		t.down(t.up(i))
	}
}

func (t timers) swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = i+1, j+1
}

func (t timers) up(i int) int {
	for i > 0 && t[i].due < t[(i-1)/2].due {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (t timers) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t); child++ {
			if t[child].due < t[least].due {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}
