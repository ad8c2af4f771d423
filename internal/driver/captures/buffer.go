package captures

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/wire/eth"
)

// Sizes of a packet buffer (WinOF 5.50, 4.9.4.4.1.1); the manual specifies no limits.
const (
	bufferPackets    = 1024
	bufferBytes      = 128
	maxBufferPackets = 1 << 16
	maxBufferBytes   = 1 << 16
	maxBufferMemory  = 64 << 20
)

// packetBuffers are those of the adapters, by index.
type packetBuffers struct {
	mu  sync.Mutex
	all map[uint32]*packetBuffer
}

// packetBuffer keeps the last packets received by a port that have no RSS hash: those for the RDMA function, and of those for an
// Ethernet function what RSS does not spread.
type packetBuffer struct {
	hashed func(b []byte) bool // a frame for the Ethernet function has a hash; nil: there is none
	mac    eth.MAC             // the adapter's
	others []eth.MAC           // those of the adapters at the same port
	tap    *capture.Tap
	bytes  int
	stop   chan struct{}
	done   chan struct{}

	mu   sync.Mutex
	ring []keptPacket
	next int // index of the next packet
	used int
	seen uint64
	lost uint64
}

type keptPacket struct {
	at       time.Time
	length   int
	ethernet bool
	data     []byte
}

// errNoBuffer says that the adapter has no packet buffer.
var errNoBuffer = errors.New("no packets are being kept; start begins that")

// StartPacketBuffer makes an adapter keep packets if its registry keys allow it.
func (r *Recorder) StartPacketBuffer(adapter string, q api.PacketBufferRequest) (api.PacketBuffer, error) {
	if err := checkPacketBuffer(&q); err != nil {
		return api.PacketBuffer{}, err
	}
	index, err := r.driver.Find(adapter)
	if err == nil {
		err = r.driver.MayBuffer(adapter)
	}
	if err != nil {
		return api.PacketBuffer{}, err
	}
	b, err := newPacketBuffer(q, r.hashed(index))
	if err != nil {
		return api.PacketBuffer{}, err
	}
	s := &r.buffers
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[index] != nil {
		return api.PacketBuffer{}, errors.New("packets are already being kept; stop ends that")
	}
	at := r.host.Addresses(index)
	if len(at.MAC) == len(b.mac) {
		b.mac = eth.MAC(at.MAC)
	}
	for _, mac := range at.Others {
		b.others = append(b.others, mac)
	}
	if err := r.host.StartCapture(index, b.tap); err != nil {
		return api.PacketBuffer{}, err
	}
	if s.all == nil {
		s.all = map[uint32]*packetBuffer{}
	}
	s.all[index] = b
	go b.keep()
	return b.state(), nil
}

// PacketBuffer returns the state of an adapter's buffer.
func (r *Recorder) PacketBuffer(adapter string) (api.PacketBuffer, error) {
	_, b, err := r.buffer(adapter)
	if errors.Is(err, errNoBuffer) {
		return api.PacketBuffer{}, nil
	}
	if err != nil {
		return api.PacketBuffer{}, err
	}
	return b.state(), nil
}

// CollectPackets empties a buffer.
func (r *Recorder) CollectPackets(adapter string) ([]byte, error) {
	_, b, err := r.buffer(adapter)
	if err != nil {
		return nil, err
	}
	return b.collect()
}

// StopPacketBuffer drops a buffer.
func (r *Recorder) StopPacketBuffer(adapter string) (api.PacketBuffer, error) {
	index, b, err := r.buffer(adapter)
	if err != nil {
		return api.PacketBuffer{}, err
	}
	r.buffers.mu.Lock()
	defer r.buffers.mu.Unlock()
	if r.buffers.all[index] != b {
		return api.PacketBuffer{}, errNoBuffer // somebody else was faster
	}
	delete(r.buffers.all, index)
	err = r.host.StopCapture(index, b.tap)
	b.end()
	state := b.state()
	state.Running, state.Stored = false, 0
	return state, err
}

func (r *Recorder) buffer(adapter string) (uint32, *packetBuffer, error) {
	index, err := r.driver.Find(adapter)
	if err != nil {
		return 0, nil, err
	}
	r.buffers.mu.Lock()
	defer r.buffers.mu.Unlock()
	if b := r.buffers.all[index]; b != nil {
		return index, b, nil
	}
	return index, nil, errNoBuffer
}

// close ends all buffers.
func (s *packetBuffers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		b.end()
	}
	s.all = nil
}

// hashed returns what tells which frames for an adapter's Ethernet function RSS spreads; nil: it has none.
func (r *Recorder) hashed(index uint32) func(b []byte) bool {
	e := r.host.Ethernet(index)
	if e == nil {
		return nil
	}
	port, mac := r.driver.UDPPort(index), eth.MAC(e.MAC)
	return func(b []byte) bool {
		var h eth.Headers
		if !h.Parse(b) || b[0]&1 == 0 && eth.MAC(b) != mac {
			return false
		}
		if h.Protocol == eth.ProtocolUDP && h.Data != 0 && binary.BigEndian.Uint16(b[h.Transport+2:]) == port { // RoCE v2
			return false
		}
		return e.Config.Spreads(&h, b)
	}
}

// checkPacketBuffer checks the size of a buffer, and fills in what is not requested.
func checkPacketBuffer(q *api.PacketBufferRequest) error {
	if q.Packets == 0 {
		q.Packets = bufferPackets
	}
	if q.Bytes == 0 {
		q.Bytes = bufferBytes
	}
	switch {
	case q.Packets < 1 || q.Packets > maxBufferPackets:
		return api.Wrong("packets", strconv.Itoa(q.Packets), fmt.Sprintf("1 to %d", maxBufferPackets))
	case q.Bytes < 1 || q.Bytes > maxBufferBytes:
		return api.Wrong("bytes", strconv.Itoa(q.Bytes), fmt.Sprintf("1 to %d", maxBufferBytes))
	case q.Packets*q.Bytes > maxBufferMemory:
		return api.Wrong("packets times bytes", strconv.Itoa(q.Packets*q.Bytes), fmt.Sprintf("at most %d", maxBufferMemory))
	}
	return nil
}

// newPacketBuffer creates a buffer. To tell what has a hash it looks at whole frames.
func newPacketBuffer(q api.PacketBufferRequest, hashed func(b []byte) bool) (*packetBuffer, error) {
	snap := min(q.Bytes, capture.MaxSnap)
	if hashed != nil {
		snap = capture.MaxSnap
	}
	tap, err := capture.NewTap(snap, 0)
	if err != nil {
		return nil, err
	}
	return &packetBuffer{
		hashed: hashed, tap: tap, bytes: q.Bytes, stop: make(chan struct{}), done: make(chan struct{}), ring: make([]keptPacket, q.Packets),
	}, nil
}

// keep takes packets until end.
func (b *packetBuffer) keep() {
	defer close(b.done)
	for {
		b.mu.Lock()
		b.take()
		b.mu.Unlock()
		select {
		case <-b.stop:
			return
		case <-b.tap.Wake():
		}
	}
}

// received reports whether a packet that passes the port is for the adapter. The tap shows what all adapters at the port send and
// receive, and what one of them sends to another as sent.
func (b *packetBuffer) received(p *capture.Packet) bool {
	if !p.Ethernet || len(p.Data) < eth.EthernetLen {
		return !p.Outbound
	}
	switch dst := eth.MAC(p.Data); {
	case dst == b.mac:
		return true
	case dst[0]&1 != 0:
		return !p.Outbound || eth.MAC(p.Data[6:]) != b.mac
	default: // to nobody here: a promiscuous function's
		return !p.Outbound && !slices.Contains(b.others, dst)
	}
}

// take takes the packets of the tap that the adapter has received. The caller holds the lock.
func (b *packetBuffer) take() {
	for p := (capture.Packet{}); b.tap.Next(&p); {
		b.lost += p.Missed
		if !b.received(&p) || b.hashed != nil && p.Ethernet && b.hashed(p.Data) {
			continue
		}
		k := &b.ring[b.next]
		*k = keptPacket{p.Time, p.Length, p.Ethernet, append(k.data[:0], p.Data[:min(len(p.Data), b.bytes)]...)}
		b.next = (b.next + 1) % len(b.ring)
		b.used = min(b.used+1, len(b.ring))
		b.seen++
	}
}

func (b *packetBuffer) end() {
	close(b.stop)
	<-b.done
}

// state counts what has arrived so far, whether or not keep has come to it.
func (b *packetBuffer) state() api.PacketBuffer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	return api.PacketBuffer{Running: true, Packets: len(b.ring), Bytes: b.bytes, Stored: b.used, Seen: b.seen, Missed: b.lost}
}

// collect writes the packets, the oldest first, and empties the buffer.
func (b *packetBuffer) collect() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	oldest := (b.next - b.used + len(b.ring)) % len(b.ring)
	kind := layers.LinkTypeRaw
	if b.used > 0 && b.ring[oldest].ethernet {
		kind = layers.LinkTypeEthernet
	}
	var out bytes.Buffer
	w := pcapgo.NewWriterNanos(&out)
	if err := w.WriteFileHeader(uint32(b.bytes), kind); err != nil {
		return nil, err
	}
	for i := range b.used {
		k := &b.ring[(oldest+i)%len(b.ring)]
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: k.at, CaptureLength: len(k.data), Length: k.length}, k.data); err != nil {
			return nil, err
		}
	}
	b.used = 0
	return out.Bytes(), nil
}
