package packet

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The ring has slots of slotSize bytes: the kernel's header, the virtio header and a frame of up to
// maxFrame bytes. At half a million packets per second it fills in 2 ms if nobody empties it; a ring twice
// as large would not stay in a second-level cache beside another.
const (
	slotSize  = 512
	slots     = 1024
	blockSize = 32 << 10
	virtioLen = 10 // struct virtio_net_hdr
)

// The bits of a slot's status (linux/if_packet.h).
const slotFilled = unix.TP_STATUS_USER

// ring is an AF_PACKET socket with its receive ring (packet_mmap, TPACKET_V2).
type ring struct {
	fd       int
	memory   []byte
	at       int    // the slot that is filled next
	protocol uint16 // to which it is bound
}

// openRing opens a ring on the rule's interface, bound to a protocol, with a filter.
func openRing(rule Rule, filter []bpf.Instruction, protocol uint16) (r *ring, err error) {
	// Without a protocol nothing arrives before the filter is attached.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket AF_PACKET", err)
	}
	r = &ring{fd: fd}
	if err := r.set(rule, filter, protocol); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ring) set(rule Rule, filter []bpf.Instruction, protocol uint16) error {
	for _, o := range []struct {
		name, value int
		text        string
	}{
		{unix.PACKET_VERSION, unix.TPACKET_V2, "PACKET_VERSION"},
		// The virtio header tells the length of a burst's packets.
		{unix.PACKET_VNET_HDR, 1, "PACKET_VNET_HDR"},
		{unix.PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING"},
	} {
		if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, o.name, o.value); err != nil {
			return os.NewSyscallError("setsockopt "+o.text, err)
		}
	}
	if err := Attach(r.fd, filter...); err != nil {
		return err
	}
	size := unix.TpacketReq{Block_size: blockSize, Block_nr: slots * slotSize / blockSize, Frame_size: slotSize, Frame_nr: slots}
	if err := unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &size); err != nil {
		return os.NewSyscallError("setsockopt PACKET_RX_RING", err)
	}
	var err error
	if r.memory, err = unix.Mmap(r.fd, 0, slots*slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	return r.bind(rule, protocol)
}

// bind starts receiving packets of a protocol, or changes the protocol; packets that arrive during the call are lost.
func (r *ring) bind(rule Rule, protocol uint16) error {
	to := unix.SockaddrLinklayer{Protocol: networkOrder(protocol), Ifindex: rule.Interface}
	if err := unix.Bind(r.fd, &to); err != nil {
		return fmt.Errorf("bind to interface %d: %w", rule.Interface, err)
	}
	r.protocol = protocol
	return nil
}

func (r *ring) close() {
	if r.memory != nil {
		_ = unix.Munmap(r.memory)
		r.memory = nil
	}
	unix.Close(r.fd)
}

// Attach makes a program the filter of a socket: it decides how many bytes of each packet are accepted.
func Attach(socket int, program ...bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, x := range raw {
		filter[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	err = unix.SetsockoptSockFprog(socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)),
		Filter: &filter[0]})
	return os.NewSyscallError("setsockopt SO_ATTACH_FILTER", err)
}

// Attach gives a UDP socket the rule's filter.
func (r Rule) Attach(socket int) error { return Attach(socket, r.socket()...) }

// header returns the header of the current slot.
func (r *ring) header() *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.memory[r.at*slotSize]))
}

// peek returns the next frame and, for a burst, the payload length of its packets, otherwise 0; nil if
// there is none. It remains until release.
func (r *ring) peek() (b []byte, segment int) {
	h := r.header()
	if atomic.LoadUint32(&h.Status)&slotFilled == 0 {
		return nil, 0
	}
	slot := r.memory[r.at*slotSize : (r.at+1)*slotSize]
	from := int(h.Mac)
	to := min(from+int(h.Snaplen), slotSize)
	if from < virtioLen || from > to {
		return slot[:0], 0
	}
	// struct virtio_net_hdr: flags, gso_type, hdr_len, gso_size, ...
	v := slot[from-virtioLen:]
	if v[1] != 0 {
		segment = int(binary.NativeEndian.Uint16(v[4:]))
	}
	return slot[from:to:to], segment
}

// release gives the slot back.
func (r *ring) release() {
	atomic.StoreUint32(&r.header().Status, unix.TP_STATUS_KERNEL)
	if r.at++; r.at == slots {
		r.at = 0
	}
}

// waiting calls each for the frames in the ring.
func (r *ring) waiting(each func(b []byte)) {
	for at := r.at; ; {
		b, _ := r.peek()
		if b == nil || r.at == (at+slots-1)%slots {
			r.at = at
			return
		}
		each(b)
		r.at = (r.at + 1) % slots
	}
}

// discard releases all frames in the ring.
func (r *ring) discard() {
	for range slots {
		if b, _ := r.peek(); b == nil {
			return
		}
		r.release()
	}
}

// settle clears the error that an interface leaves on the socket when it goes down, which would otherwise end every
// sleep on the socket.
func (r *ring) settle() { _, _ = unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR) }

// networkOrder converts a number between host and network byte order.
func networkOrder(p uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], p)
	return binary.NativeEndian.Uint16(b[:])
}
