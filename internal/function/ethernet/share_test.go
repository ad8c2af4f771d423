package ethernet

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// endless is a function beside an Ethernet function that has something to send at any time, as an RDMA function in a long write.
type endless struct {
	route   frame.Route
	header  [eth.EthernetLen]byte
	payload [1024]byte
	sent    int
}

func (*endless) Receive(clock.Time, []frame.In) {}
func (*endless) Pending() uint8                 { return 1 }
func (*endless) Advance(clock.Time)             {}
func (*endless) Deadline() clock.Time           { return 0 }
func (e *endless) Transmit(_ clock.Time, _ uint8, out []frame.Out) int {
	for i := range out {
		out[i].Reset(&e.route)
		n := copy(out[i].Head[headAt:], e.header[:])
		out[i].HeadStart, out[i].HeadEnd, out[i].Payload = headAt, uint16(headAt+n), e.payload[:]
	}
	e.sent += len(out)
	return len(out)
}

// TestShares: at one port neither of two functions starves that both have something to send at any time: an Ethernet function with
// large sends, cut or not, leaves the other, which has small frames, as many bytes as it has itself, and the other way round.
func TestShares(t *testing.T) {
	for _, large := range []bool{false, true} {
		c := alone(t, plain(macA))
		c.SetWire(carrier(large))
		other := &endless{header: [eth.EthernetLen]byte{2, 5: 7, 6: 2, 7: 9, 12: 0x89, 13: 0x15}}
		c.port.Attach(other, port.Station{MAC: eth.MAC{2, 9}, Kind: port.Ethernet}).Plug(c.wire, netip.Addr{}, nil)
		x := tcpFlow()
		x.unfinished = true
		send := Send{Frame: x.frame(counting(60000)), Task: offload.Task{Kind: offload.TCPv4, Segment: 1460}}
		out := make([]frame.Out, 32)
		for range 1000 {
			for q := c.QueueFor(send.Frame); c.SendRoom(q) > 0; {
				if err := c.Send(0, q, &send); err != nil {
					t.Fatal(err)
				}
			}
			if c.port.Transmit(0, out) == 0 {
				t.Fatal("nothing is sent")
			}
		}
		mine, others := uint64(0), uint64(other.sent*(len(other.header)+len(other.payload)))
		if c := c.Counters().Sent; large { // as they are on a wire in the end
			mine = c.Bytes + (c.Bytes/1460-c.Frames)*(eth.EthernetLen+eth.IPv4Len+eth.TCPLen)
		} else {
			mine = c.Bytes
		}
		if part := float64(mine) / float64(mine+others); part < 0.48 || part > 0.52 {
			t.Errorf("large frames %v: the Ethernet function sends %.3f of the bytes", large, part)
		}
	}
}
