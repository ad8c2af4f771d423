package interop

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// testConnections exercises the connection manager: both roles, private data up to the limits, rejects, disconnects
// from either side, and many connections at once.
func testConnections(t *testing.T, g *guest) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a := newAdapter(t, f.ours)
			p := g.peer(t)
			for _, c := range []struct {
				name string
				test func(*testing.T, *adapter, *peer, family)
			}{
				{"private/weconnect", ourPrivateData},
				{"private/theyconnect", theirPrivateData},
				{"reject/weconnect", theyReject},
				{"reject/theyconnect", weReject},
				{"nolistener/weconnect", theyDoNotListen},
				{"nolistener/theyconnect", weDoNotListen},
				{"disconnect/ours", weDisconnect},
				{"disconnect/theirs", theyDisconnect},
				{"many/weconnect", func(t *testing.T, a *adapter, p *peer, f family) { manyConnections(t, a, p, f, weConnect) }},
				{"many/theyconnect", func(t *testing.T, a *adapter, p *peer, f family) { manyConnections(t, a, p, f, theyConnect) }},
			} {
				t.Run(c.name, func(t *testing.T) {
					a.t, p.t = t, t
					c.test(t, a, p, f)
					a.t, p.t = t, t
				})
			}
		})
	}
}

// data returns n bytes of private data.
func data(n, seed int) []byte {
	b := make([]byte, n)
	fill(b, seed)
	return b
}

// wantPrivate checks private data that was received in a field of this size. The message does not contain its length,
// so zeros must follow.
func wantPrivate(t testing.TB, got, want []byte, field int) {
	t.Helper()
	padded := append(append([]byte(nil), want...), make([]byte, field-len(want))...)
	if !bytes.Equal(got, padded) {
		t.Errorf("private data is %x, want %x", got, padded)
	}
}

func ourPrivateData(t *testing.T, a *adapter, p *peer, f family) {
	for _, n := range []int{0, 1, verbs.MaxConnectPrivate} {
		reply := min(n*4, verbs.MaxAcceptPrivate)
		param := all
		param.Private = data(n, 1)
		l := p.do("listen addr=%s port=%d", f.theirs, servicePort)
		e := a.end(verbs.RC)
		var err error
		e.id, err = a.dev.NewID()
		ok(t, err)
		result := make(chan error, 1)
		go func() {
			result <- e.id.Connect(within(t, await.Limit), netip.AddrPortFrom(f.theirs, servicePort), e.qp, param)
		}()
		r := p.do("request id=%s", l["id"])
		wantPrivate(t, r.bytes(t, "priv"), param.Private, verbs.MaxConnectPrivate)
		p.do("accept id=%s timeout=0 priv=%x rr=7 depth=5", r["id"], data(reply, 2))
		ok(t, <-result)
		wantPrivate(t, e.id.Peer().Private, data(reply, 2), verbs.MaxAcceptPrivate)
		if peer := e.id.Peer(); peer.ResponderResources != 5 || peer.InitiatorDepth != 7 {
			t.Errorf("the peer's answer asks for %d and offers %d reads, want 5 and 7", peer.ResponderResources, peer.InitiatorDepth)
		}
		ok(t, e.id.Establish())
		if v := p.do("event id=%s", r["id"]); v["name"] != "RDMA_CM_EVENT_ESTABLISHED" {
			t.Errorf("the peer's event is %s", v[""])
		}
		(&couple{e, p, r.num(t, "id")}).close()
		p.do("destroy id=%s", l["id"])
	}
}

func theirPrivateData(t *testing.T, a *adapter, p *peer, f family) {
	for _, n := range []int{0, 1, verbs.MaxConnectPrivate} {
		param := all
		param.Private = data(min(n*4, verbs.MaxAcceptPrivate), 2)
		l, err := a.dev.Listen(netip.AddrPortFrom(f.ours, servicePort), 0)
		ok(t, err)
		e := a.end(verbs.RC)
		connected := p.later("connect addr=%s port=%d priv=%x rr=7 depth=5", f.ours, servicePort, data(n, 1))
		e.id, err = l.Request(within(t, await.Limit))
		ok(t, err)
		peer := e.id.Peer()
		wantPrivate(t, peer.Private, data(n, 1), verbs.MaxConnectPrivate)
		if peer.ResponderResources != 5 || peer.InitiatorDepth != 7 {
			t.Errorf("the peer's request asks for %d and offers %d reads, want 5 and 7", peer.ResponderResources, peer.InitiatorDepth)
		}
		ok(t, e.id.Accept(within(t, await.Limit), e.qp, param))
		c := connected()
		wantPrivate(t, c.bytes(t, "priv"), param.Private, verbs.MaxAcceptPrivate)
		(&couple{e, p, c.num(t, "id")}).close()
		ok(t, l.Close())
	}
}

func theyReject(t *testing.T, a *adapter, p *peer, f family) {
	for _, n := range []int{0, verbs.MaxRejectPrivate} {
		l := p.do("listen addr=%s port=%d", f.theirs, servicePort)
		e := a.end(verbs.RC)
		var err error
		e.id, err = a.dev.NewID()
		ok(t, err)
		result := make(chan error, 1)
		go func() {
			result <- e.id.Connect(within(t, await.Limit), netip.AddrPortFrom(f.theirs, servicePort), e.qp, all)
		}()
		r := p.do("request id=%s", l["id"])
		p.do("reject id=%s priv=%x", r["id"], data(n, 4))
		err = <-result
		var rejected *verbs.RejectedError
		if !errors.As(err, &rejected) || !errors.Is(err, verbs.ErrRefused) {
			t.Fatalf("connect answers %v, want a reject", err)
		}
		if rejected.Reason != verbs.RejectConsumer {
			t.Errorf("reason is %v, want %v", rejected.Reason, verbs.RejectConsumer)
		}
		wantPrivate(t, rejected.Private, data(n, 4), verbs.MaxRejectPrivate)
		e.drop()
		p.do("destroy id=%s", l["id"])
	}
}

func weReject(t *testing.T, a *adapter, p *peer, f family) {
	for _, n := range []int{0, verbs.MaxRejectPrivate} {
		l, err := a.dev.Listen(netip.AddrPortFrom(f.ours, servicePort), 0)
		ok(t, err)
		type result struct {
			answer
			ok bool
		}
		connected := make(chan result, 1)
		go func() {
			a, ok := p.try("connect addr=%s port=%d", f.ours, servicePort)
			connected <- result{a, ok}
		}()
		id, err := l.Request(within(t, await.Limit))
		ok(t, err)
		ok(t, id.Reject(data(n, 4)))
		r := <-connected
		if r.ok || r.num(t, "event") != cmRejected || verbs.RejectReason(r.num(t, "status")) != verbs.RejectConsumer {
			t.Errorf("the peer's connect answers %s, want a reject with reason 28", r.answer[""])
		}
		wantPrivate(t, r.bytes(t, "priv"), data(n, 4), verbs.MaxRejectPrivate)
		ok(t, id.Close())
		ok(t, l.Close())
	}
}

func theyDoNotListen(t *testing.T, a *adapter, p *peer, f family) {
	e := a.end(verbs.RC)
	var err error
	e.id, err = a.dev.NewID()
	ok(t, err)
	err = e.id.Connect(within(t, await.Limit), netip.AddrPortFrom(f.theirs, 9), e.qp, all)
	var rejected *verbs.RejectedError
	if !errors.As(err, &rejected) || rejected.Reason != verbs.RejectInvalidServiceID {
		t.Errorf("connect answers %v, want a reject for want of a listener", err)
	}
	e.drop()
}

func weDoNotListen(t *testing.T, a *adapter, p *peer, f family) {
	r, good := p.try("connect addr=%s port=9", f.ours)
	if good || r.num(t, "event") != cmRejected || verbs.RejectReason(r.num(t, "status")) != verbs.RejectInvalidServiceID {
		t.Errorf("the peer's connect answers %s, want a reject with reason 8", r[""])
	}
}

// weDisconnect ends a connection with receives posted on both sides, which must be flushed.
func weDisconnect(t *testing.T, a *adapter, p *peer, f family) {
	mem := p.region(4096, "lwra")
	c := weConnect(t, a, p, f, all, "")
	c.us.recv(7, a.mr.SGE(0, 64))
	p.do("recv id=%d mr=%d len=64 wr=8", c.id, mem.mr)
	result := make(chan error, 1)
	go func() { result <- c.us.id.Disconnect(within(t, await.Limit)) }()
	p.disconnected(c.id)
	p.do("disconnect id=%d", c.id)
	ok(t, <-result)
	if w := c.us.next(verbs.WRFlush); w.ID != 7 {
		t.Errorf("request %d is flushed, want 7", w.ID)
	}
	if w := p.one(c.id, wcFlush); w.wr != 8 {
		t.Errorf("the peer's request %d is flushed, want 8", w.wr)
	}
	c.drop()
}

func theyDisconnect(t *testing.T, a *adapter, p *peer, f family) {
	c := theyConnect(t, a, p, f, all, "")
	c.us.recv(7, a.mr.SGE(0, 64))
	p.do("disconnect id=%d", c.id)
	select {
	case <-c.us.id.Disconnected():
	case <-time.After(await.Limit):
		t.Fatal("the peer has disconnected, and nobody says so")
	}
	if w := c.us.next(verbs.WRFlush); w.ID != 7 {
		t.Errorf("request %d is flushed, want 7", w.ID)
	}
	p.disconnected(c.id)
	c.drop()
}

const (
	connections = 100
	message     = 2000
)

// manyConnections has traffic on many QPs at the same time.
func manyConnections(t *testing.T, a *adapter, p *peer, f family,
	connect func(testing.TB, *adapter, *peer, family, verbs.ConnParam, string) *couple) {
	mem := p.region(connections*message, "lwra")
	mem.fill(0, connections*message, 1)
	var list []*couple
	for range connections {
		list = append(list, connect(t, a, p, f, all, "sq=8 rq=8 inline=0"))
	}
	for i, c := range list {
		c.us.recv(1, a.mr.SGE(i*message, message))
		p.do("send id=%d op=send mr=%d off=%d len=%d wr=2", c.id, mem.mr, i*message, message)
		c.us.send(verbs.SendWR{ID: 3, Op: verbs.OpRead, SGE: []verbs.SGE{a.mr.SGE((connections+i)*message, message)},
			RemoteAddr: mem.addr + uint64(i*message), RKey: uint32(mem.rkey)})
	}
	for _, c := range list {
		c.us.next(verbs.Success)
		c.us.next(verbs.Success)
		p.one(c.id, wcSuccess)
	}
	check(t, a.mr.Bytes()[:connections*message], 1)
	check(t, a.mr.Bytes()[connections*message:][:connections*message], 1)
	for _, c := range list {
		c.close()
	}
}
