package simulate

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Where the headers of a frame are.
const (
	ipAt   = eth.EthernetLen
	idAt   = ipAt + 4 // IPv4 identification, in which frames between RC queue pairs carry where their payloads are
	udpAt  = ipAt + eth.IPv4Len
	bthAt  = udpAt + eth.UDPLen
	afterB = bthAt + ib.BTHLen

	roceDPort = 4791
	// firstPort is the least source port of RoCE v2 (IBA annex A17).
	firstPort = 0xc000
	pkey      = 0xffff
)

// frame notes the headers of the packets of a flow.
func (h *leanHost) frame(f *sending) {
	class := f.Priority << 5
	if h.nic.Congestion.React>>f.Priority&1 != 0 {
		class |= eth.ECNCapable
	}
	h.address(h.packet[:], f.number, f.mac, f.peer, class)
	h.framed = f
}

// address writes the headers before the BTH of a frame of a flow to a host. What no switch looks at is left out.
func (h *leanHost) address(b []byte, number int32, mac eth.MAC, to [4]byte, class uint8) {
	copy(b, h.own[:])
	copy(b, mac[:])
	ip := eth.IPv4(b[ipAt:])
	ip.SetToS(class)
	copy(ip[16:], to[:])
	eth.UDP(b[udpAt:]).Encode(sourcePort(number), roceDPort, 0)
	binary.BigEndian.PutUint16(b[udpAt+4:], uint16(len(b)-udpAt+ib.ICRCLen))
}

// sourcePort is that of a flow's packets, by which switches spread them.
func sourcePort(flow int32) uint16 { return firstPort | uint16(uint32(flow)*2654435761>>18) }
