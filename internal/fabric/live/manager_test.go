package live

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// asker is a program that takes answers of subnet administration at a place.
type asker struct {
	at  fabric.Place
	got []fabric.Packet
}

func (a *asker) Take(_ clock.Time, at fabric.Place, p *fabric.Packet) bool {
	if at != a.at || p.MAD[1] != mad.ClassSubnetAdm || p.MAD[3]&0x80 == 0 {
		return false
	}
	a.got = append(a.got, *p)
	return true
}

// TestManagerAnswersOnTheWay: a short request that CarryOn brings to a manager is answered when it returns, unless
// the manager's own goroutine is at work. Every request is answered in the end, whoever brings it.
func TestManagerAnswersOnTheWay(t *testing.T) {
	g, a, b, news := pair(t, Options{})
	until(t, news[1], active(b))
	who := &asker{at: fabric.Place{Node: 1, Port: 1}}
	t.Cleanup(g.Attend(who))
	count := func() (n int) {
		g.Do(func(clock.Time, *fabric.Fabric) { n = len(who.got) })
		return n
	}
	ask := func(method uint8, carry func(fabric.Place, *fabric.Packet) fabric.Result) {
		m := mad.NewSA(method, mad.AttrNodeRecord, 0, 7)
		m.ComponentMask = 1 // selects the LID
		m.Data[0], m.Data[1] = byte(b.Port().LID>>8), byte(b.Port().LID)
		p := fabric.Packet{DLID: a.Port().LID, SQP: 1, DQP: ib.QPN(1)}
		m.Append(p.MAD[:0])
		if r := carry(who.at, &p); r != fabric.Delivered {
			t.Fatalf("the request was %v, want delivered", r)
		}
	}
	const each = 50
	at := 0
	for i := range each {
		ask(mad.MethodGet, g.CarryOn)
		at += count() - 3*i
		ask(mad.MethodGet, g.Carry)
		ask(mad.MethodGetTable, g.CarryOn)
		if !await.Until(func() bool { return count() >= 3*(i+1) }) {
			t.Fatalf("%d requests, %d answers", 3*(i+1), count())
		}
	}
	if at == 0 {
		t.Error("no request was answered before CarryOn returned")
	}
	for i := range who.got {
		if s := be16(who.got[i].MAD[4:]); s != 0 {
			t.Fatalf("an answer has status %#x, want 0", s)
		}
	}
}

func be16(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }
