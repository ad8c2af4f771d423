package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// writeOnly returns a packet that is one whole write of four bytes to x.
func writeOnly(x *end, psn ib.PSN, key uint32) []byte {
	b := make([]byte, ib.BTHLen+ib.RETHLen+4)
	ib.BTH(b[:ib.BTHLen]).Encode(ib.RCWriteOnly, false, true, 0, ib.PKeyDefault, ib.QPN(x.q.num), psn)
	ib.RETH(b[ib.BTHLen:]).Encode(regionAt, key, 4)
	b[len(b)-1] = byte(psn)
	return b
}

// TestEarlyPacketsAreBounded: packets that come ahead of their turn are kept up to a total number over all queue
// pairs, and per queue pair only as far ahead as a window reaches. None is left when their queue pairs have ended.
func TestEarlyPacketsAreBounded(t *testing.T) {
	ha, hb := newHost(t, nil, "10.0.0.1", Config{}), newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x1000})
	key := hb.region(regionAt, make([]byte, 64), allowAll).Key
	c := defaultConnection()
	var ends []*end
	for range 4 {
		a, b := ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
		connect(a, b, c)
		ends = append(ends, b)
		for ahead := uint32(1); ahead < 2*reorderSpan; ahead++ {
			psn := ib.PSN(c.psn[0]).Add(ahead)
			hb.e.Receive(1, []frame.In{{Data: writeOnly(b, psn, key), Src: ha.addr, Dst: hb.addr}})
		}
		if n := b.q.resp.reorder.count; n > reorderSpan-1 {
			t.Errorf("a queue pair keeps %d packets, want at most %d", n, reorderSpan-1)
		}
	}
	if n := hb.e.kept.used; n != maxEarly {
		t.Errorf("%d packets are kept, want %d", n, maxEarly)
	}
	// The missing packet and one that follows those kept make them count as received.
	first := ib.PSN(c.psn[0])
	for _, psn := range []ib.PSN{first, first.Add(reorderSpan)} {
		hb.e.Receive(2, []frame.In{{Data: writeOnly(ends[0], psn, key), Src: ha.addr, Dst: hb.addr}})
	}
	if got := ends[0].q.resp.psn; got != first.Add(reorderSpan+1) {
		t.Errorf("the next PSN is %d, want %d", got, first.Add(reorderSpan+1))
	}
	ends[1].modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
	for _, x := range ends[2:] {
		hb.e.Destroy(3, x.q)
	}
	if n := hb.e.kept.used; n != 0 {
		t.Errorf("%d packets are still kept, want none", n)
	}
}

// TestLostAgain loses the same packet three times: the packets behind it show each loss, and it is sent again long
// before any timer ends.
func TestLostAgain(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	c := defaultConnection()
	c.timeout = 18 // a second
	connect(a, b, c)
	const size = 200 << 10
	a.region(regionAt, make([]byte, size), allowAll)
	b.region(regionAt, make([]byte, size), allowAll)
	b.port.Service = time.Microsecond
	times := 0
	n.Filter = func(from, _ *sim.Port, p []byte) bool {
		if from == a.port && ib.BTH(p[:ib.BTHLen]).PSN() == ib.PSN(c.psn[0]+50) {
			times++
			return times > 3
		}
		return true
	}
	a.doWith(ring.OpWrite, size, func(*ring.SendWR) {})
	n.Run(clock.Time(100*time.Millisecond), func() bool { return len(a.comps) == 1 })
	if len(a.comps) != 1 || a.comps[0].Status != ring.Success {
		t.Fatalf("after %v the completions are %+v", time.Duration(n.Now()), a.comps)
	}
	if again := a.e.counters.RetransmittedPackets; again > 12 { // with the last one each time
		t.Errorf("%d packets were sent again for one that was lost three times", again)
	}
	if n.Now() > clock.Time(2*time.Millisecond) {
		t.Errorf("the write took %v, want at most 2 ms", time.Duration(n.Now()))
	}
}
