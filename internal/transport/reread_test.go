package transport

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/frame"
)

// TestLateRepeatsMakeRoom sends duplicates of reads whose answers were merely late, and then a new read. The
// requester must have the answer to the oldest, or it could not have sent the new one (IBA 9.7.5.1.2): however many
// are being repeated, the new read must not be refused as one too many.
func TestLateRepeatsMakeRoom(t *testing.T) {
	const depth = 4 // of the card's QP
	for repeats := range depth + 1 {
		c := &card{t: t, addr: netip.MustParseAddr("10.0.0.9")}
		c.connect(nil)
		read := func(i int) {
			c.packet(&datadriven.TestData{}, []string{"read"}, map[string]string{"psn": fmt.Sprint(5000 + i), "dma": "8"})
		}
		for i := range depth {
			read(i)
			c.settle()
		}
		c.log.Reset()
		for i := range repeats {
			read(i)
		}
		read(depth)
		c.settle()
		last := fmt.Sprintf("RDMA READ Response Only psn=%d", 5000+depth)
		if got := c.log.String(); strings.Contains(got, "NAK") || !strings.Contains(got, last) {
			t.Errorf("%d repeats, then a new read; want an answer to it and no NAK, got:\n%s", repeats, got)
		}
	}
}

// TestNAKBeforeDisconnect: the NAK that ended a QP is sent before the MAD by which the CM ends the connection.
func TestNAKBeforeDisconnect(t *testing.T) {
	c := &card{t: t, addr: netip.MustParseAddr("10.0.0.9")}
	c.connect(nil)
	c.packet(&datadriven.TestData{}, []string{"read"}, map[string]string{"psn": "5000", "dma": "8", "va": "1"})
	if err := c.us.e.SendDatagram(&frame.Route{Src: c.us.addr, Dst: c.addr}, 1, 0, []byte{1}); err != nil {
		t.Fatal(err)
	}
	c.settle()
	nak, mad := strings.Index(c.log.String(), "NAK remote access"), strings.Index(c.log.String(), "UD SEND")
	if nak < 0 || mad < nak {
		t.Errorf("want the NAK before the MAD, sent:\n%s", c.log.String())
	}
}
