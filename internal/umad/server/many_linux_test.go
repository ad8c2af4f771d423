package server

import (
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// nodeInfo returns a request to the node itself, by a directed route without hops.
func nodeInfo(t *testing.T, id uint64) (b [mad.Len]byte) {
	t.Helper()
	m := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, id)
	if err := m.Direct(nil); err != nil {
		t.Fatal(err)
	}
	return [mad.Len]byte(m.Append(nil))
}

// TestManyRequests: requests that are started where others are answered travel together, and each gets its answer
// once.
func TestManyRequests(t *testing.T) {
	w := serve(t)
	p := w.open(umad.ServiceOptions{Node: "hca2"})
	const all, window = 5000, 100
	request := nodeInfo(t, 0)
	var (
		mu           sync.Mutex
		begun, ended int
		over         = make(chan struct{})
	)
	var next func()
	done := func(d *umad.Datagram, err error) {
		if err != nil || d.MAD[3] != mad.MethodGetResp || d.MAD[64] != mad.BaseVersion {
			t.Errorf("answer %v, %v", d, err)
		}
		mu.Lock()
		if ended++; ended == all {
			close(over)
		}
		mu.Unlock()
		next()
	}
	next = func() {
		mu.Lock()
		more := begun < all
		begun++
		mu.Unlock()
		if more {
			p.Start(umad.Address{LID: ib.LIDPermissive}, &request, umad.Timing{Timeout: await.Limit, Tries: 1}, done)
		}
	}
	for range window {
		next()
	}
	<-over
	p.Close()
	p.Start(umad.Address{LID: ib.LIDPermissive}, &request, umad.DefaultTiming, func(_ *umad.Datagram, err error) {
		if err != umad.ErrClosed {
			t.Errorf("on a closed port: %v", err)
		}
	})
}

// TestManyInAMessage: the answers to MADs of one message come in few messages, in order. A MAD that cannot be sent
// comes back among them with its header only.
func TestManyInAMessage(t *testing.T) {
	w := serve(t)
	c := hostile(t, w)
	r := socket.Request{Kind: socket.OpenMany, Node: "hca1", Port: 1}
	in := make([]byte, socket.MaxMessage)
	if _, err := c.Write(r.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(in); err != nil || n != socket.AnswerLen {
		t.Fatal(n, err)
	}
	if _, err := c.Write(socket.AppendRegistration(nil, &agent.Registration{QPN: 0, Raw: true})); err != nil {
		t.Fatal(err)
	}
	const all, bad = 40, 7
	b := []byte{socket.SendMany, 0, 0, 0, 0, 0, 0, 0}
	for i := range all {
		h := agent.Header{LID: ib.LIDPermissive, Length: mad.Len}
		if i == bad {
			h.Agent = 9
		}
		m := nodeInfo(t, uint64(i))
		b = append(h.Append(b), m[:]...)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	messages, seen := 0, map[byte]bool{}
	for len(seen) < all {
		n, err := c.Read(in)
		if err != nil {
			t.Fatal(err)
		}
		for messages++; n > 0; {
			h := agent.ParseHeader(in)
			id := in[agent.HeaderLen+15]
			if seen[id] || (h.Status != 0) != (id == bad) || (h.Length == socket.EachLen) == (id == bad) {
				t.Errorf("MAD %d: %+v", id, h)
			}
			seen[id] = true
			n -= int(h.Length)
			copy(in, in[h.Length:])
		}
	}
	if messages > all/4 {
		t.Errorf("%d messages for %d MADs", messages, all)
	}
}

// TestHostileMany: a message that is not a sequence of whole MADs ends the connection, as does one on a port opened
// for one MAD per message.
func TestHostileMany(t *testing.T) {
	w := serve(t)
	m := append([]byte{socket.SendMany, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 2*socket.EachLen)...)
	c := openHostile(t, w)
	_, _ = c.Write(m)
	ended(t, "several MADs on a port for one", c)
	c = hostile(t, w)
	r := socket.Request{Kind: socket.OpenMany, Node: "hca1", Port: 1}
	_, _ = c.Write(r.Append(nil))
	if _, err := c.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(m[:len(m)-1])
	ended(t, "a MAD that is cut", c)
}

// TestGather: MADs that are gathered reach the fabric when they are flushed, together and in order.
func TestGather(t *testing.T) {
	w := serve(t)
	transport, _, err := umad.Options{Service: umad.ServiceOptions{Socket: w.Path(), Node: "hca2"}}.Transport()
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	g, ok := transport.(umad.Gatherer)
	if !ok {
		t.Fatal("the service's transport gathers nothing")
	}
	events := func() (n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.clients {
			n += c.events
		}
		return n
	}
	before := events()
	const all = socket.Together - 1
	for n := range uint64(all) {
		d := umad.Datagram{Remote: umad.Address{LID: ib.LIDPermissive}, MAD: nodeInfo(t, n)}
		if err := g.Gather(&d); err != nil {
			t.Fatal(err)
		}
	}
	if n := events() - before; n != 0 {
		t.Errorf("%d messages before the flush", n)
	}
	if err := g.Flush(); err != nil {
		t.Fatal(err)
	}
	var d umad.Datagram
	for n := range all {
		if err := g.Receive(&d); err != nil || d.MAD[15] != byte(n) || d.MAD[3] != mad.MethodGetResp {
			t.Fatalf("answer %d is %d, %v", n, d.MAD[15], err)
		}
	}
	if n := events() - before; n != 1 {
		t.Errorf("%d messages for %d MADs, want 1", n, all)
	}
}
