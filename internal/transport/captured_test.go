package transport

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/captures"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// recorded is what a capture of Linux Soft-RoCE shows of one responder: the requests sent to it and its answers.
type recorded struct {
	qpn, peer         uint32
	requests, answers [][]byte // BTH to pad
}

// transportPacket returns a frame's packet from the BTH to the pad, or false if the frame is not IPv4.
func transportPacket(t *testing.T, b []byte) (p []byte, ok bool) {
	t.Helper()
	_, rest, err := eth.ParseEthernet(b)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, err = eth.ParseIPv4(rest)
	if err != nil {
		return nil, false
	}
	_, rest, err = eth.ParseUDP(rest)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), rest[:len(rest)-ib.ICRCLen]...), true
}

// record returns the requests to, and the answers of, the QP that the first RC request of a capture goes to.
func record(t *testing.T, frames [][]byte) (r recorded) {
	for _, f := range frames {
		b, ok := transportPacket(t, f)
		if !ok {
			continue
		}
		h := ib.BTH(b)
		switch op, dest := h.Opcode(), uint32(h.DestQP()); {
		case op.Service() != ib.ServiceRC:
		case op.IsRequest() && (r.qpn == 0 || dest == r.qpn):
			r.qpn = dest
			r.requests = append(r.requests, b)
		case op.IsResponse() && dest != r.qpn && (r.peer == 0 || dest == r.peer):
			r.peer = dest
			r.answers = append(r.answers, b)
		}
	}
	return r
}

// TestSoftRoCERequests replays requests that Linux Soft-RoCE sent to a responder and compares our answers with the
// recorded ones: opcode, PSN, syndrome, and the MSN relative to the first. Where the two differ on purpose, changed
// is our syndrome.
func TestSoftRoCERequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		receive  int  // size of the receives
		late     int  // the receives are posted just before this request
		keepKeys bool // the recorded keys are wrong on purpose
		cut      bool // the recording ends before the last answer
		changed  ib.Syndrome
	}{
		{name: "cswap"}, {name: "fadd"}, {name: "loss_send8k", receive: 8192}, {name: "nak_access", keepKeys: true},
		{name: "nak_atomic", keepKeys: true}, {name: "nak_length", receive: 1, changed: ib.NAKInvalidRequest},
		{name: "nak_rdaccess", keepKeys: true},
		{name: "nak_rnr", receive: 4096, late: 3}, {name: "nak_burst", receive: 4096}, {name: "rcpp", receive: 4096}, {name: "readbw8k"},
		{name: "sendbw", receive: 8192}, {name: "writebw64k", cut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := captures.All()
			if err != nil {
				t.Fatal(err)
			}
			var r recorded
			for _, f := range all {
				if f.Name == c.name || f.Name == c.name+".pcap" {
					r = record(t, f.Frames)
				}
			}
			if len(r.requests) == 0 {
				t.Fatal("no requests")
			}
			got := replay(t, r, c.receive, c.late, c.keepKeys)
			if c.cut {
				got = got[:len(r.answers)]
			}
			compare(t, got, r.answers, c.changed)
		})
	}
}

// replay has a responder answer the requests one by one, and returns its answers.
func replay(t *testing.T, r recorded, receive, late int, keepKeys bool) (answers [][]byte) {
	h := newHost(t, nil, "10.0.0.2", Config{})
	h.e.kept.used = maxEarly // Soft-RoCE keeps no packet that comes ahead of its turn
	peer := newHost(t, nil, "10.0.0.3", Config{})
	x := h.qp(command.RC, QPConfig{Number: r.qpn})
	p := &end{host: peer, q: &QP{num: r.peer}}
	c := defaultConnection()
	c.depth, c.rnrTimer = 16, 18
	c.psn[0] = uint32(ib.BTH(r.requests[0]).PSN())
	bringUp(x, p, c)
	key := h.region(regionAt, make([]byte, 1<<20), allowAll).Key
	out := make([]frame.Out, 128)
	for i, b := range r.requests {
		for range 100 {
			if i == late {
				x.postRecv(ring.RecvWR{NumSGE: 1, SGE: x.sges(regionAt, receive, key)})
			}
		}
		op, rest := ib.BTH(b).Opcode(), b[ib.BTHLen:]
		if !keepKeys && op.HasRETH() {
			ib.RETH(rest).SetVA(regionAt)
			ib.RETH(rest).SetRKey(key)
		}
		if !keepKeys && op.HasAtomicETH() {
			ib.AtomicETH(rest).SetVA(regionAt | ib.AtomicETH(rest).VA()&7)
			ib.AtomicETH(rest).SetRKey(key)
		}
		now := clock.Time(i * 1000)
		h.e.Receive(now, []frame.In{{Data: b, Src: peer.addr, Dst: h.addr}})
		for n := h.e.Transmit(now, 0, out); n > 0; n = h.e.Transmit(now, 0, out) {
			for k := range out[:n] {
				o := &out[k]
				a := append([]byte(nil), o.Head[frame.HeadRoom:o.HeadEnd]...)
				answers = append(answers, append(append(a, o.Payload...), make([]byte, o.Pad)...))
			}
		}
	}
	return answers
}

// bringUp takes x to RTR as the responder of p.
func bringUp(x, p *end, c connection) {
	x.modify(command.ModifyQP{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init,
		Access: uint32(c.access)}, nil)
	x.modify(command.ModifyQP{
		Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer,
		State: command.RTR, MTU: 1024, DestQPN: p.q.num, RQPSN: c.psn[0], ResponderResources: c.depth, MinRNRTimer: c.rnrTimer,
	}, &frame.Route{Src: x.addr, Dst: p.addr})
}

func compare(t *testing.T, got, want [][]byte, changed ib.Syndrome) {
	t.Helper()
	var firstGot, firstWant uint32
	line := func(b []byte, first *uint32) string {
		p, err := ib.ParsePacket(b)
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintf("%v psn=%d len=%d", p.BTH.Opcode(), p.BTH.PSN(), len(p.Payload))
		if p.AETH != nil {
			if *first == 0 {
				*first = p.AETH.MSN() + 1
			}
			syndrome := p.AETH.Syndrome()
			if syndrome.IsNAK() && syndrome != ib.NAKSequence && changed != 0 {
				syndrome = changed
			}
			s += fmt.Sprintf(" %v msn+%d", syndrome, p.AETH.MSN()+1-*first)
		}
		return s
	}
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = line(got[i], &firstGot)
		}
		if i < len(want) {
			w = line(want[i], &firstWant)
		}
		if g != w {
			t.Errorf("answer %d: %s, recorded %s", i, g, w)
		}
	}
}
