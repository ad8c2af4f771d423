package interop

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// wrong is a faulty request and how it ends: the completion of the side that made it, and that of the answering side,
// if it has one.
type wrong struct {
	name string
	// Our request to the peer.
	ours     func(c *couple, mem region)
	ourEnd   verbs.Status
	theirEnd int // status of the receive posted by prepare; -1: none
	// The peer's request to us.
	theirs        func(c *couple, mem region) string
	theirOwnEnd   int
	ourReceiveEnd verbs.Status
	receive       int // bytes of the receive that the answering side posts; -1: none
}

// none means that there is no completion.
const none = -1

func ourWR(op verbs.Opcode, n int, addr uint64, key uint32) func(*couple, region) {
	return func(c *couple, mem region) {
		c.us.send(verbs.SendWR{ID: 1, Op: op, SGE: []verbs.SGE{c.us.mr.SGE(0, n)}, RemoteAddr: mem.addr + addr,
			RKey: uint32(mem.rkey) ^ key})
	}
}

func theirWR(op string, n int, addr uint64, key uint32) func(*couple, region) string {
	return func(c *couple, mem region) string {
		return fmt.Sprintf("op=%s mr=%d len=%d raddr=%d rkey=%d", op, mem.mr, n, c.us.mr.RemoteAddr()+addr, c.us.mr.RKey()^key)
	}
}

const badKey = 0x5500

var wrongs = []wrong{
	{"write with a bad rkey", ourWR(verbs.OpWrite, 3000, 0, badKey), verbs.RemoteAccess, none, theirWR("write", 3000, 0, badKey),
		wcRemAccess, verbs.Success, none},
	{"write past the end", ourWR(verbs.OpWrite, 3000, memorySize-2999, 0), verbs.RemoteAccess, none,
		theirWR("write", 3000, memorySize-2999, 0), wcRemAccess, verbs.Success, none},
	{"read with a bad rkey", ourWR(verbs.OpRead, 3000, 0, badKey), verbs.RemoteAccess, none, theirWR("read", 3000, 0, badKey), wcRemAccess,
		verbs.Success, none},
	{"read past the end", ourWR(verbs.OpRead, 3000, memorySize-2999, 0), verbs.RemoteAccess, none,
		theirWR("read", 3000, memorySize-2999, 0), wcRemAccess, verbs.Success, none},
	{"atomic with a bad rkey", ourWR(verbs.OpFetchAdd, 8, 0, badKey), verbs.RemoteAccess, none, theirWR("fadd", 8, 0, badKey), wcRemAccess,
		verbs.Success, none},
	// rxe does not let its own programs post this one.
	{"atomic at an odd address", ourWR(verbs.OpFetchAdd, 8, 4, 0), verbs.RemoteInvalidRequest, none, nil, none, verbs.Success, none},
	// rxe answers a message longer than its receive with a remote operational NAK and ends the receive with a
	// local QP operation error. The specification requires an invalid request NAK and a local length error.
	{"send longer than the receive", ourWR(verbs.OpSend, 3000, 0, 0), verbs.RemoteOperation, wcLocQPOp, theirWR("send", 3000, 0, 0),
		wcRemInvReq, verbs.LocalLength, 100},
}

// testNegative provokes the errors of the specification in both directions.
func testNegative(t *testing.T, g *guest) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { negative(t, g, f) })
	}
}

func negative(t *testing.T, g *guest, f family) {
	a := newAdapter(t, f.ours)
	p := g.peer(t)
	mem := p.region(memorySize, "lwra")
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			a.t, p.t = t, t
			test(t)
			a.t, p.t = t, t
		})
	}
	for _, w := range wrongs {
		run(w.name+"/ours", func(t *testing.T) {
			c := weConnect(t, a, p, f, all, "")
			if w.receive >= 0 {
				p.do("recv id=%d mr=%d len=%d wr=9", c.id, mem.mr, w.receive)
			}
			w.ours(c, mem)
			c.us.next(w.ourEnd)
			if w.theirEnd != none {
				p.one(c.id, w.theirEnd)
			}
			c.failed()
		})
		if w.theirs == nil {
			continue
		}
		run(w.name+"/theirs", func(t *testing.T) {
			c := weConnect(t, a, p, f, all, "")
			if w.receive >= 0 {
				c.us.recv(9, a.mr.SGE(0, w.receive))
			}
			p.do("send id=%d wr=1 %s", c.id, w.theirs(c, mem))
			p.one(c.id, w.theirOwnEnd)
			if w.ourReceiveEnd != verbs.Success {
				c.us.next(w.ourReceiveEnd)
			}
			c.failed()
		})
	}
	few := plain{typ: verbs.RC, mtu: 1024, psn: 100, timeout: 14, retry: 2, rnrRetry: 2, depth: 4}
	unready := few
	unready.timeout, unready.retry = patientTimeout, 7
	run("RNR to the end/ours", func(t *testing.T) {
		c := join(t, a, p, f, unready)
		ourWR(verbs.OpSend, 100, 0, 0)(c, mem)
		c.us.next(verbs.RNRRetryExceeded)
		c.failed()
	})
	run("RNR to the end/theirs", func(t *testing.T) {
		c := join(t, a, p, f, unready)
		p.do("send id=%d wr=1 %s", c.id, theirWR("send", 100, 0, 0)(c, mem))
		p.one(c.id, wcRNRRetry)
		c.failed()
	})
	run("RNR then a receive/ours", func(t *testing.T) {
		c := weConnect(t, a, p, f, all, "")
		fill(a.mr.Bytes()[:5000], 1)
		before := a.count("Requester RNR NAK")
		ourWR(verbs.OpSend, 5000, 0, 0)(c, mem)
		await.Eventually(t, "the peer has no receive", func() bool { return a.count("Requester RNR NAK") > before })
		p.do("recv id=%d mr=%d len=5000 wr=9", c.id, mem.mr)
		c.us.next(verbs.Success)
		p.one(c.id, wcSuccess)
		mem.check(0, 5000, 1)
		c.close()
	})
	run("RNR then a receive/theirs", func(t *testing.T) {
		c := weConnect(t, a, p, f, all, "")
		mem.fill(0, 5000, 2)
		before := a.count("Responder RNR NAK")
		p.do("send id=%d wr=1 %s", c.id, theirWR("send", 5000, 0, 0)(c, mem))
		await.Eventually(t, "we have no receive", func() bool { return a.count("Responder RNR NAK") > before })
		c.us.recv(9, a.mr.SGE(0, 5000))
		c.us.next(verbs.Success)
		p.one(c.id, wcSuccess)
		check(t, a.mr.Bytes()[:5000], 2)
		c.close()
	})
	run("unknown QP/ours", func(t *testing.T) {
		x := few
		x.theirQPN = 0xfffff0
		c := join(t, a, p, f, x)
		ourWR(verbs.OpSend, 100, 0, 0)(c, mem)
		c.us.next(verbs.RetryExceeded)
		c.failed()
	})
	run("unknown QP/theirs", func(t *testing.T) {
		x := few
		x.ourQPN = 0xfffff0
		c := join(t, a, p, f, x)
		p.do("send id=%d wr=1 %s", c.id, theirWR("send", 100, 0, 0)(c, mem))
		p.one(c.id, wcRetry)
		c.failed()
	})
}

// failed checks that requests posted after an error are flushed on the side whose request failed, and frees both
// ends.
func (c *couple) failed() {
	t := c.us.t
	t.Helper()
	info, err := c.us.qp.Query()
	ok(t, err)
	theirs := c.them.do("state id=%d", c.id).num(t, "state")
	if info.State != verbs.StateError && theirs != stateErr {
		t.Errorf("after the error our QP is in %v and the peer's in state %d, want one in error", info.State, theirs)
	}
	c.drop()
}
