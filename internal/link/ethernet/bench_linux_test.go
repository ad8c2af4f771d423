package ethernet

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/batch"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// benchBurst frames are sent, and then received, at a time.
const benchBurst = 32

// onCarrier is onVeth, with both ends ready to send.
func onCarrier(b *testing.B) (near, far netlink.Link) {
	near, far = onVeth(b)
	await.Eventually(b, "the pair has a carrier", func() bool {
		for _, l := range []netlink.Link{near, far} {
			if now, err := netlink.LinkByIndex(l.Attrs().Index); err != nil || now.Attrs().OperState != netlink.OperUp {
				return false
			}
		}
		return true
	})
	return near, far
}

// exchange sends bursts and receives them, and reports what each takes for a frame. On veth a call that sends also does what the
// system does to receive.
func exchange(b *testing.B, send, receive func() int) {
	var sent, received time.Duration
	frames, arrived := 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for frames < b.N {
		began := time.Now()
		n := send()
		left := time.Now()
		for ; n > 0; n-- { // as often as it may take if one frame arrives at a time
			k := receive()
			if arrived += k; k == 0 || k >= n {
				break
			}
		}
		frames += benchBurst
		sent, received = sent+left.Sub(began), received+time.Since(left)
	}
	b.StopTimer()
	if arrived < frames*9/10 {
		b.Errorf("%d of %d frames have arrived", arrived, frames)
	}
	b.ReportMetric(float64(sent.Nanoseconds())/float64(frames), "send-ns/op")
	b.ReportMetric(float64(received.Nanoseconds())/float64(frames), "receive-ns/op")
}

// BenchmarkLink sends frames of 64 bytes from a link to another across veth, in one process.
func BenchmarkLink(b *testing.B) {
	onCarrier(b)
	x, y := mustOpen(b, Config{Interface: "near"}, at(1, 0)), mustOpen(b, Config{Interface: "far"}, at(2, 0))
	must(b, y.Listen(at(2, 0).MAC, true))
	out, in := make([]frame.Out, benchBurst), make([]frame.In, 256)
	for i := range out {
		o := &out[i]
		o.Reset(&frame.Route{SrcMAC: at(1, 0).MAC})
		o.HeadStart = frame.HeadRoom - 64
		(&eth.Ethernet{Dst: at(2, 0).MAC, Src: at(1, 0).MAC, Type: 0x88b5}).Put(o.Head[o.HeadStart:])
	}
	exchange(b, func() int {
		n, err := x.Send(out)
		must(b, err)
		return n
	}, func() int {
		n, err := y.Receive(in)
		must(b, err)
		return n
	})
}

// packetRing is a packet socket's ring of slots (TPACKET_V2: Documentation/networking/packet_mmap).
type packetRing struct {
	fd, at int
	mem    []byte
}

const (
	ringSlot  = 2048
	ringSlots = 4096
	ringBlock = 1 << 18
	slotLen   = 4  // of struct tpacket2_hdr: the status is at 0
	slotMAC   = 12 // where the frame begins that was received
	slotFrame = 32 // where the frame begins that is to be sent
)

func openRing(b *testing.B, fd, option int) *packetRing {
	r := &packetRing{fd: fd}
	must(b, os.NewSyscallError("PACKET_VERSION", unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2)),
		os.NewSyscallError("ring", unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, option, &unix.TpacketReq{Block_size: ringBlock,
			Block_nr: ringSlots * ringSlot / ringBlock, Frame_size: ringSlot, Frame_nr: ringSlots})))
	var err error
	r.mem, err = unix.Mmap(fd, 0, ringSlots*ringSlot, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(b, err)
	b.Cleanup(func() { _ = unix.Munmap(r.mem) })
	return r
}

func (r *packetRing) slot() (b []byte, status *uint32) {
	b = r.mem[r.at*ringSlot:][:ringSlot]
	return b, (*uint32)(unsafe.Pointer(&b[0]))
}

func (r *packetRing) next() { r.at = (r.at + 1) % ringSlots }

func (r *packetRing) send(f []byte) (n int) {
	for ; n < benchBurst; n++ {
		b, status := r.slot()
		if atomic.LoadUint32(status) != unix.TP_STATUS_AVAILABLE {
			break
		}
		copy(b[slotFrame:], f)
		binary.NativeEndian.PutUint32(b[slotLen:], uint32(len(f)))
		atomic.StoreUint32(status, unix.TP_STATUS_SEND_REQUEST)
		r.next()
	}
	_, _, _ = unix.Syscall6(unix.SYS_SENDTO, uintptr(r.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return n
}

func (r *packetRing) receive() (n int) {
	for ; ; n++ {
		b, status := r.slot()
		if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			return n
		}
		_ = b[binary.NativeEndian.Uint16(b[slotMAC:])]
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
		r.next()
	}
}

// packetSocket opens a packet socket on an interface.
func packetSocket(b *testing.B, on netlink.Link, protocol uint16, prepare func(fd int)) int {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(b, err)
	b.Cleanup(func() { _ = unix.Close(fd) })
	prepare(fd)
	var big [2]byte
	binary.BigEndian.PutUint16(big[:], protocol)
	must(b, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(big[:]), Ifindex: on.Attrs().Index}))
	return fd
}

// set sets an option of packet sockets to 1.
func set(b *testing.B, fd int, options ...int) {
	for _, o := range options {
		must(b, unix.SetsockoptInt(fd, unix.SOL_PACKET, o, 1))
	}
}

// BenchmarkWays sends frames of 64 bytes across veth between bare packet sockets in the ways that there are: with sendmmsg, past the
// queueing discipline (PACKET_QDISC_BYPASS), and from a ring; received with recvmmsg, as the link does, and in a ring with a virtio
// header. It is what the link's choice rests on.
func BenchmarkWays(b *testing.B) {
	f := make([]byte, 64)
	(&eth.Ethernet{Dst: at(2, 0).MAC, Src: at(1, 0).MAC, Type: 0x88b5}).Put(f)
	for _, from := range []string{"sendmmsg", "bypass", "ring"} {
		for _, to := range []string{"recvmmsg", "ring"} {
			b.Run(from+" to "+to, func(b *testing.B) {
				near, far := onCarrier(b)
				var tx, rx *packetRing
				outlet := packetSocket(b, near, 0, func(fd int) {
					if from == "bypass" {
						set(b, fd, unix.PACKET_QDISC_BYPASS)
					}
					if from == "ring" {
						tx = openRing(b, fd, unix.PACKET_TX_RING)
					}
				})
				inlet := packetSocket(b, far, unix.ETH_P_ALL, func(fd int) {
					set(b, fd, unix.PACKET_VNET_HDR, unix.PACKET_AUXDATA, unix.PACKET_IGNORE_OUTGOING)
					must(b, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, defaultReceiveBuffer))
					if to == "ring" {
						rx = openRing(b, fd, unix.PACKET_RX_RING)
					}
				})
				send := func() int { return tx.send(f) }
				if tx == nil {
					send = mmsgSender(outlet, f)
				}
				receive := func() int { return rx.receive() }
				if rx == nil {
					in := batch.NewIn(largest, controlLen)
					receive = func() int {
						n, _ := in.Receive(inlet, batch.Most)
						return n
					}
				}
				exchange(b, send, receive)
			})
		}
	}
}

// mmsgSender sends bursts of a frame with one call.
func mmsgSender(fd int, f []byte) func() int {
	type message struct {
		header unix.Msghdr
		length uint32
	}
	v := unix.Iovec{Base: &f[0]}
	v.SetLen(len(f))
	list := make([]message, benchBurst)
	for i := range list {
		list[i].header.Iov = &v
		list[i].header.SetIovlen(1)
	}
	return func() int {
		n, _, _ := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&list[0])), benchBurst, unix.MSG_DONTWAIT, 0, 0)
		return int(n)
	}
}
