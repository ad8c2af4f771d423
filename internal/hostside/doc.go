// Package hostside is who uses the Ethernet function of an adapter: a network stack behind a TAP interface of Linux, or a
// virtual machine behind a unix socket. A Side moves frames between the function (package ethernet) and an End, which is the
// system's part: it reads and writes frames and never blocks.
//
// What such a stack leaves undone in the frames that it hands over (struct virtio_net_hdr, VIRTIO 1.3 5.1.6) is an
// offload.Task of the function, and the other way round, so that a large packet of TCP passes unsplit. What the function
// does not take, because a key says so, is done here, as the stack would have done it.
//
// Nothing grows without bound: frames that were read wait in a fixed number of buffers, and while all are in use nothing is
// read, so that the host's own queue fills; what a host does not take waits in the function's rings, and is lost there.
package hostside

import (
	"github.com/softvpi/softvpi/internal/os/netspace"
	"github.com/softvpi/softvpi/wire/eth"
)

// Outcome is what became of a frame that was written.
type Outcome uint8

const (
	// Taken frames are the host's.
	Taken Outcome = iota
	// Full: there is no room now.
	Full
	// Lost frames were refused for good: nobody is there, or the interface is down.
	Lost
)

// Offloads are what a host may leave to the function.
type Offloads struct {
	Checksums      bool // of TCP and UDP
	Large4, Large6 bool // large packets of TCP
	Datagrams      bool // bursts of UDP datagrams, of one size but for the last
	Tunnels        bool // large packets of TCP inside tunnels over UDP
	LargeSize      int  // bytes of an IP packet
}

// End is the host's end. It belongs to the owner of the Side.
type End interface {
	// Kind says what it is, for people: "TAP nic0".
	Kind() string
	// Queues returns how many there are, at most 64, and SetQueues asks for another number.
	Queues() int
	SetQueues(n int) error
	// Virtio reports whether frames have a virtio header before them.
	Virtio() bool
	// Datagrams reports whether the host takes, and may hand over, bursts of UDP datagrams as one frame.
	Datagrams() bool
	// Ready returns the queues that may have frames, bit q for queue q.
	Ready() uint64
	// Read reads the next frame of a queue, and returns its length; 0: none waits.
	Read(queue int, b []byte) int
	// Write writes a frame, in pieces.
	Write(queue int, pieces [][]byte) Outcome
	// Pause stops signalling frames that wait, or begins again.
	Pause(on bool)
	// Set makes the interface what the function is: its address and largest IP packet.
	Set(mac eth.MAC, mtu int) error
	// Offer says what the host may leave undone.
	Offer(o Offloads) error
	// SetLink says whether the function is there: the carrier.
	SetLink(up bool)
	// Descriptors are those that become readable when frames wait.
	Descriptors() []int
	// Close gives the interface back; what was made for the driver is removed.
	Close() error
}

// Enclosing is an End of a host that may know large packets of TCP inside tunnels over UDP. Virtio headers have
// offload.TunnelHeaderLen bytes then.
type Enclosing interface {
	End
	Tunnels() bool
}

// Placed is an End that is a network interface, in a network namespace to which anybody may move it. Any goroutine may ask.
type Placed interface {
	End
	// Space returns where the interface is now. It takes CAP_NET_ADMIN over that namespace.
	Space() (netspace.ID, error)
}

// Attended is an End whose other side somebody has, as a virtual machine, or nobody. Any goroutine may ask.
type Attended interface {
	End
	Attended() bool
}
