package port

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// numbers is a function with one queue pair, and with a request at the subnet administration.
type numbers struct {
	Function
	qpn   uint32
	waits bool
}

func (n *numbers) HasNumber(qpn uint32) bool { return n.qpn == qpn }
func (n *numbers) Expects([]byte) bool       { return n.waits }

// TestByLID: what comes to a LID that is one station's alone is that station's, whatever queue pair it is for, and nothing else is. The
// others share the port's LID and are told apart by queue pairs and GIDs.
func TestByLID(t *testing.T) {
	gid := func(n byte) ib.GID { return ib.GID{0: 0xfe, 1: 0x80, 15: n} }
	stand := func(n byte, qpn uint32, lid ib.LID, waits bool) place {
		s := &Station{Owns: func(a netip.Addr) bool { return a == gid(n).Addr() }, numbered: &numbers{qpn: qpn, waits: waits}}
		if lid != 0 {
			s.OwnsLID = func(l ib.LID) bool { return l == lid }
		}
		return place{station: s}
	}
	w := &Wire{places: []place{stand(1, 10, 0, false), stand(2, 20, 0, true), stand(3, 30, 7, true), stand(4, 40, 8, false)}}
	w.mac = len(w.places)
	for _, c := range []struct {
		name string
		dlid ib.LID
		gid  byte // 0: no GRH
		qpn  ib.QPN
		want int // -1: nobody's
	}{
		{"the port's LID, a queue pair of the first", 4, 0, 10, 0}, {"the port's LID, one of the second", 4, 0, 20, 1},
		{"the port's LID, one of a station with a LID of its own", 4, 0, 30, 0}, {"its LID", 7, 0, 30, 2}, {"its LID, another's", 7, 0, 20, 2},
		{"its LID, QP1", 7, 0, ib.QPGSI, 2}, {"the LID of one that asks nothing, QP1", 8, 0, ib.QPGSI, 3}, {"the port's LID, QP1", 4, 0, ib.QPGSI, 1},
		{"the GID of the second", 4, 2, 20, 1}, {"the GID of a station at its LID", 7, 3, 30, 2}, {"at the port's", 4, 3, 30, -1},
		{"at another's", 8, 3, 30, -1}, {"nobody's GID", 4, 9, 30, -1},
	} {
		b := make([]byte, ib.LRHLen+ib.GRHLen+ib.BTHLen+ib.DETHLen+mad.Len+ib.ICRCLen)
		h := ib.LRH(b)
		h.SetDLID(c.dlid)
		h.SetNextHeader(ib.LNHLocal)
		at := ib.LRHLen
		if c.gid != 0 {
			h.SetNextHeader(ib.LNHGlobal)
			g := ib.GRH(b[at : at+ib.GRHLen])
			g.SetDGID(gid(c.gid))
			at += ib.GRHLen
		}
		bth := ib.BTH(b[at:])
		bth.SetDestQP(c.qpn)
		got := -1
		for i, x := 0, w.byNumber(&frame.In{Data: b}); i < len(w.places); i++ {
			if x == &w.places[i] {
				got = i
			}
		}
		if got != c.want {
			t.Errorf("%s: it is for station %d, want %d", c.name, got, c.want)
		}
	}
}
