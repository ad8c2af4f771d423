package packet

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// mostHeaders is the maximum length of the Ethernet, IP and UDP headers written here.
const mostHeaders = eth.EthernetLen + eth.IPv6Len + eth.UDPLen

// maxFrame is the length of the longest frame that is sent.
const maxFrame = mostHeaders + MostPayload

// build writes the frame of a single packet to b and returns its length. The packet's ICRC must be for
// identification 0 and no options. b must have room for the longest headers and the packet.
func build(b []byte, g *eth.Template, port uint16, o *frame.Out) int {
	r := o.Route
	if r.DstPort != 0 {
		port = r.DstPort
	}
	length := eth.UDPLen + o.Len()
	udp := g.Put(b, r.TrafficClass, frame.Hops(r.HopLimit), r.FlowLabel, length)
	eth.UDP(b[udp:]).Encode(r.SrcPort, port, length)
	at := udp + eth.UDPLen
	at += copy(b[at:], o.Head[o.HeadStart:o.HeadEnd])
	at += copy(b[at:], o.Payload)
	at += copy(b[at:], o.Tail[:o.TailLen])
	if !r.Dst.Is4() {
		eth.UDP(b[udp:]).SetChecksum(eth.UDPChecksum(r.Src, r.Dst, b[udp:at]))
	}
	return at
}
