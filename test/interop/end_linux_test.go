package interop

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

const (
	servicePort = 7471
	memorySize  = 8<<20 + 4096
)

// adapter is a SoftVPI adapter on the segment, with what the ends of a test use.
type adapter struct {
	t    testing.TB
	host *verbs.Host
	dev  *verbs.Device
	pd   *verbs.PD
	mr   *verbs.MR
	srq  *verbs.SRQ // from which the next ends take their receives; nil: each end has its own

	excuse *excuse // for requests that lost all of their retries; nil: none
}

// newAdapter runs an adapter at addr until the test ends.
func newAdapter(t testing.TB, addr netip.Addr) *adapter {
	t.Helper()
	host, err := verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: addr}}})
	ok(t, err)
	a := &adapter{t: t, host: host}
	t.Cleanup(func() { ok(t, host.Close()) })
	a.dev, err = host.DeviceByAddr(addr)
	ok(t, err)
	a.pd, err = a.dev.AllocPD()
	ok(t, err)
	a.mr = a.register(memorySize, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic|verbs.WindowBind)
	return a
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func (a *adapter) register(size int, access verbs.Access) *verbs.MR {
	a.t.Helper()
	mr, err := a.pd.Register(make([]byte, size), access)
	ok(a.t, err)
	return mr
}

// end is one of our QPs, with its completion queue.
type end struct {
	*adapter
	cq *verbs.CQ
	qp *verbs.QP
	id *verbs.ID
}

func (a *adapter) end(typ verbs.QPType) *end {
	a.t.Helper()
	e := &end{adapter: a}
	var err error
	e.cq, err = a.dev.CreateCQ(512)
	ok(a.t, err)
	e.qp, err = a.pd.CreateQP(verbs.QPConfig{Type: typ, SRQ: a.srq, SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 128, RecvDepth: 128, SendSGE: 4,
		RecvSGE: 4, Inline: 64, SignalAll: true})
	ok(a.t, err)
	return e
}

func (e *end) send(wr verbs.SendWR) {
	e.t.Helper()
	ok(e.t, e.qp.PostSend(&wr))
}

func (e *end) recv(id uint64, sge ...verbs.SGE) {
	e.t.Helper()
	ok(e.t, e.qp.PostRecv(&verbs.RecvWR{ID: id, SGE: sge}))
}

// take takes the next completion.
func (e *end) take() verbs.WC {
	e.t.Helper()
	var wc [1]verbs.WC
	if _, err := e.cq.Next(within(e.t, await.Limit), wc[:]); err != nil {
		e.t.Fatalf("%v; counters other than 0: %s", err, e.counters())
	}
	return wc[0]
}

// counters lists what the adapter has counted: what became of a packet that did not arrive.
func (a *adapter) counters() string {
	rows, err := a.dev.Counters()
	if err != nil {
		return err.Error()
	}
	var list []string
	for _, c := range rows {
		if c.Value != 0 {
			list = append(list, fmt.Sprintf("%s=%d", c.Name, c.Value))
		}
	}
	return strings.Join(list, " ")
}

// count returns a counter of the adapter.
func (a *adapter) count(name string) uint64 {
	a.t.Helper()
	rows, err := a.dev.Counters()
	ok(a.t, err)
	for _, c := range rows {
		if c.Name == name {
			return c.Value
		}
	}
	a.t.Fatalf("no counter is called %q", name)
	return 0
}

// next takes the next completion, which must have this status.
func (e *end) next(status verbs.Status) verbs.WC {
	e.t.Helper()
	wc := e.take()
	if wc.Status == verbs.RetryExceeded && status != wc.Status {
		e.excuse.takes(e.t, fmt.Sprintf("our request %d", wc.ID))
	}
	if wc.Status != status {
		e.t.Fatalf("our completion is %+v (%v), want %v", wc, wc.Status, status)
	}
	return wc
}

// all is what both sides allow in the tests of operations.
var all = verbs.ConnParam{ResponderResources: 16, InitiatorDepth: 16}

// couple is a connection between an end of ours and one of the peer.
type couple struct {
	us   *end
	them *peer
	id   uint64 // the id of the peer's end
}

// weConnect connects to a listener of the peer.
func weConnect(t testing.TB, a *adapter, p *peer, f family, param verbs.ConnParam, options string) *couple {
	t.Helper()
	l := p.do("listen addr=%s port=%d", f.theirs, servicePort)
	defer p.do("destroy id=%s", l["id"])
	e := a.end(verbs.RC)
	id, err := a.dev.NewID()
	ok(t, err)
	e.id = id
	result := make(chan error, 1)
	go func() {
		err := id.Connect(within(t, await.Limit), netip.AddrPortFrom(f.theirs, servicePort), e.qp, param)
		if err == nil {
			err = id.Establish()
		}
		result <- err
	}()
	r, asked := p.try("request id=%s", l["id"])
	if !asked {
		select {
		case err = <-result:
		default:
		}
		t.Fatalf("the peer was not asked: %s; our attempt: %v", r[""], err)
	}
	p.do("accept id=%s %s", r["id"], options)
	a.completes(t, <-result)
	return &couple{e, p, r.num(t, "id")}
}

// theyConnect accepts a connection from the peer.
func theyConnect(t testing.TB, a *adapter, p *peer, f family, param verbs.ConnParam, options string) *couple {
	t.Helper()
	l, err := a.dev.Listen(netip.AddrPortFrom(f.ours, servicePort), 0)
	ok(t, err)
	defer l.Close()
	e := a.end(verbs.RC)
	connected := p.later("connect addr=%s port=%d %s", f.ours, servicePort, options)
	e.id, err = l.Request(within(t, await.Limit))
	ok(t, err)
	a.completes(t, e.id.Accept(within(t, await.Limit), e.qp, param))
	return &couple{e, p, connected().num(t, "id")}
}

// close ends the connection from our side. The peer answers as programs do, by disconnecting too, and keeps its end.
// If its DREP and those to our first repetitions are lost, the kernel's time-wait may be over; then it is silent for
// as long as the program keeps the end. Our connection ends all the same.
func (c *couple) close() {
	t := c.us.t
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- c.us.id.Disconnect(within(t, await.Limit)) }()
	c.them.disconnected(c.id)
	c.them.do("disconnect id=%d", c.id)
	ok(t, <-result)
	c.drop()
}

// drop frees both ends.
func (c *couple) drop() {
	c.us.t.Helper()
	c.us.drop()
	c.them.do("destroy id=%d", c.id)
}

func (e *end) drop() {
	e.t.Helper()
	if e.id != nil {
		ok(e.t, e.id.Close())
	}
	ok(e.t, e.qp.Close())
	ok(e.t, e.cq.Close())
}

// disconnected waits until the peer knows that its connection has ended.
func (p *peer) disconnected(id uint64) {
	p.t.Helper()
	if a := p.do("event id=%d", id); a.num(p.t, "event") != cmDisconnected {
		p.t.Fatalf("the peer's event is %s, want disconnected", a[""])
	}
}
