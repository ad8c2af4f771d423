package frames

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rings of packet sockets, TPACKET_V3 (packet(7), Documentation/networking/packet_mmap). Received frames come in blocks, each
// with its number of frames and the place of the first; frames to send stand in slots of a size of their own.
const (
	blockSize, blocks = 1 << 18, 32
	slotSize          = 2048
	slots             = blockSize / slotSize * blocks
	retireAfter       = 1 // ms until a block that is not full is handed over

	statusAt = 8 // of struct tpacket_block_desc, in its header
	countAt  = 12
	firstAt  = 16

	nextAt       = 0 // of struct tpacket3_hdr
	snapLenAt    = 12
	lenAt        = 16
	slotStatusAt = 20
	macAt        = 24
	slotDataAt   = 48 // TPACKET3_HDRLEN less struct sockaddr_ll: where the data of a slot to send begins
)

// ring is a packet socket with its ring.
type ring struct {
	fd  int
	mem []byte
}

func (c *Config) openRing(option int, protocol uint16) (r *ring, mac [6]byte, err error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, mac, err
	}
	copy(mac[:], i.HardwareAddr)
	r = &ring{}
	if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, mac, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return nil, mac, os.NewSyscallError("setsockopt PACKET_VERSION", err)
	}
	q := unix.TpacketReq3{Block_size: blockSize, Block_nr: blocks, Frame_size: slotSize, Frame_nr: slots}
	if option == unix.PACKET_RX_RING {
		q.Retire_blk_tov = retireAfter
	}
	if err = unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, option, &q); err != nil {
		return nil, mac, os.NewSyscallError("setsockopt of the ring", err)
	}
	if r.mem, err = unix.Mmap(r.fd, 0, blockSize*blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, mac, os.NewSyscallError("mmap", err)
	}
	var big [2]byte
	binary.BigEndian.PutUint16(big[:], protocol)
	err = unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(big[:]), Ifindex: i.Index})
	return r, mac, os.NewSyscallError("bind", err)
}

func (r *ring) close() {
	if r.mem != nil {
		_ = unix.Munmap(r.mem)
	}
	_ = unix.Close(r.fd)
}

func (r *ring) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }

// ringSender fills slots and makes the system send them with one call for a burst.
func (c *Config) ringSender() (end, func(), error) {
	if c.Size > slotSize-slotDataAt {
		return nil, nil, fmt.Errorf("frames of %d bytes, want at most %d", c.Size, slotSize-slotDataAt)
	}
	r, mac, err := c.openRing(unix.PACKET_TX_RING, 0)
	if err != nil {
		return nil, nil, err
	}
	for i := range slots {
		c.frame(r.mem[i*slotSize+slotDataAt:][:c.Size], mac, i)
	}
	next := 0
	return func() (int, error) {
		n := 0
		for ; n < c.Burst; n++ {
			at := next * slotSize
			if s := atomic.LoadUint32(r.word(at + slotStatusAt)); s != unix.TP_STATUS_AVAILABLE {
				break
			}
			*r.word(at + nextAt) = 0
			*r.word(at + snapLenAt), *r.word(at + lenAt) = uint32(c.Size), uint32(c.Size)
			atomic.StoreUint32(r.word(at+slotStatusAt), unix.TP_STATUS_SEND_REQUEST)
			next = (next + 1) % slots
		}
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(r.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != unix.EAGAIN && errno != unix.ENOBUFS {
			return n, os.NewSyscallError("send", errno)
		}
		return n, nil
	}, r.close, nil
}

// ringReceiver takes blocks as they are handed over, without a call.
func (c *Config) ringReceiver() (e end, done func(), err error) {
	r, _, err := c.openRing(unix.PACKET_RX_RING, EtherType)
	if err != nil {
		return nil, nil, err
	}
	next, seen := 0, uint64(0)
	return func() (int, error) {
		at := next * blockSize
		if atomic.LoadUint32(r.word(at+statusAt))&unix.TP_STATUS_USER == 0 {
			fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}}
			_, _ = unix.Poll(fds, 1)
			return 0, nil
		}
		n, h := int(*r.word(at + countAt)), at+int(*r.word(at + firstAt))
		for range n {
			b := r.mem[h+int(binary.NativeEndian.Uint16(r.mem[h+macAt:])):]
			seen += uint64(b[0]) // the frame is looked at, as one that was drained
			if got := int(*r.word(h + snapLenAt)); got != c.Size {
				return n, fmt.Errorf("a frame of %d bytes has arrived, want %d", got, c.Size)
			}
			h += int(*r.word(h + nextAt))
		}
		atomic.StoreUint32(r.word(at+statusAt), unix.TP_STATUS_KERNEL)
		next = (next + 1) % blocks
		return n, nil
	}, r.close, nil
}
