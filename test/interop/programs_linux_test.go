package interop

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// testPrograms runs ucmatose and udaddy of rdma-core, in both roles, against counterparts that speak their protocols.
func testPrograms(t *testing.T, g *guest) {
	for _, f := range families {
		t.Run(f.name+"/ucmatose/server", func(t *testing.T) { ucmatoseServer(t, g, f) })
		t.Run(f.name+"/ucmatose/client", func(t *testing.T) { ucmatoseClient(t, g, f) })
		t.Run(f.name+"/udaddy/server", func(t *testing.T) { udaddyServer(t, g, f) })
		t.Run(f.name+"/udaddy/client", func(t *testing.T) { udaddyClient(t, g, f) })
	}
}

const (
	matoseConnections = 200
	matoseMessages    = 3
	matoseSize        = 2500
)

func matoseArgs(f family, more ...string) []string {
	return append([]string{"ucmatose", "-b", f.theirs.String(), "-c", fmt.Sprint(matoseConnections), "-C", fmt.Sprint(matoseMessages), "-S",
		fmt.Sprint(matoseSize)}, more...)
}

// matoseEnd returns a connection's end with its receives posted.
func matoseEnd(a *adapter, typ verbs.QPType, size int) *end {
	e := a.end(typ)
	for i := range matoseMessages {
		e.recv(uint64(i), a.mr.SGE(1<<20, size))
	}
	return e
}

func (e *end) completions(n int) {
	e.t.Helper()
	for range n {
		e.next(verbs.Success)
	}
}

// ucmatoseServer acts as the server of ucmatose, which sends first. All requests come at once and wait in the
// backlog.
func ucmatoseServer(t *testing.T, g *guest, f family) {
	a := newAdapter(t, f.ours)
	l, err := a.dev.Listen(netip.AddrPortFrom(f.ours, servicePort), matoseConnections)
	ok(t, err)
	r := g.program(t, matoseArgs(f, "-s", f.ours.String())...)
	var ends []*end
	for range matoseConnections {
		e := matoseEnd(a, verbs.RC, matoseSize)
		e.id, err = l.Request(within(t, await.Limit))
		ok(t, err)
		if err := e.id.Accept(within(t, await.Limit), e.qp, all); err != nil {
			t.Fatalf("connection %d: %v; ucmatose says\n%s", len(ends), err, tail(r.text()))
		}
		ends = append(ends, e)
	}
	for _, e := range ends {
		for range matoseMessages {
			e.send(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{a.mr.SGE(0, matoseSize)}})
		}
	}
	for _, e := range ends {
		e.completions(2 * matoseMessages)
	}
	for _, e := range ends {
		ok(t, e.id.Disconnect(within(t, await.Limit)))
	}
	r.succeeds(t, programLimit)
	for _, e := range ends {
		e.drop()
	}
}

// ucmatoseClient acts as the client of ucmatose, which requests all connections at once.
func ucmatoseClient(t *testing.T, g *guest, f family) {
	a := newAdapter(t, f.ours)
	r := g.program(t, matoseArgs(f)...)
	g.listens(t)
	var ends []*end
	for range matoseConnections {
		e := matoseEnd(a, verbs.RC, matoseSize)
		var err error
		e.id, err = a.dev.NewID()
		ok(t, err)
		ends = append(ends, e)
	}
	connected := make(chan error, len(ends))
	for _, e := range ends {
		go func() {
			err := e.id.Connect(within(t, programLimit), netip.AddrPortFrom(f.theirs, servicePort), e.qp, all)
			if err == nil {
				err = e.id.Establish()
			}
			connected <- err
		}()
	}
	for n := range ends {
		if err := <-connected; err != nil {
			t.Fatalf("connection %d: %v; ucmatose says\n%s", n, err, tail(r.text()))
		}
	}
	for _, e := range ends {
		e.completions(matoseMessages)
		for range matoseMessages {
			e.send(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{a.mr.SGE(0, matoseSize)}})
		}
	}
	for _, e := range ends {
		e.completions(matoseMessages)
	}
	for _, e := range ends {
		select {
		case <-e.id.Disconnected():
		case <-time.After(await.Limit):
			t.Fatalf("ucmatose does not disconnect:\n%s", tail(r.text()))
		}
	}
	r.succeeds(t, programLimit)
	for _, e := range ends {
		e.drop()
	}
}

const (
	udaddyQPs  = 20
	udaddySize = 100
	grh        = 40
	udpQKey    = 0x01234567 // RDMA_UDP_QKEY of rdma_cm
)

func udaddyArgs(f family, more ...string) []string {
	return append([]string{"udaddy", "-b", f.theirs.String(), "-c", fmt.Sprint(udaddyQPs), "-C", fmt.Sprint(matoseMessages), "-S",
		fmt.Sprint(udaddySize)}, more...)
}

// ready moves a UD QP to ready-to-send.
func (e *end) ready(qkey uint32) {
	e.t.Helper()
	ok(e.t, e.qp.Modify(verbs.QPAttr{State: verbs.StateInit, QKey: qkey}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskQKey))
	ok(e.t, e.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.MaskState))
	ok(e.t, e.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.MaskState|verbs.MaskSQPSN))
}

// tell sends udaddy's messages, each of which contains the sender's QP number.
func (e *end) tell(ah *verbs.AH, qpn, qkey uint32) {
	e.t.Helper()
	for range matoseMessages {
		e.send(verbs.SendWR{Op: verbs.OpSendImm, Imm: e.qp.Number(), AH: ah, RemoteQPN: qpn, RemoteQKey: qkey,
			SGE: []verbs.SGE{e.mr.SGE(0, udaddySize)}})
	}
}

// udaddyServer answers look-ups, receives messages, and then replies to their sender.
func udaddyServer(t *testing.T, g *guest, f family) {
	a := newAdapter(t, f.ours)
	l, err := a.dev.ListenService(netip.AddrPortFrom(f.ours, 7174), 0)
	ok(t, err)
	r := g.program(t, udaddyArgs(f, "-s", f.ours.String())...)
	ah, err := a.pd.CreateAH(verbs.AddressVector{Addr: f.theirs})
	ok(t, err)
	var ends []*end
	for range udaddyQPs {
		e := a.end(verbs.UD)
		e.ready(udpQKey)
		for range matoseMessages {
			e.recv(1, a.mr.SGE(1<<20, grh+udaddySize))
		}
		e.id, err = l.Request(within(t, await.Limit))
		ok(t, err)
		ok(t, e.id.Accept(within(t, await.Limit), e.qp, verbs.ConnParam{QKey: udpQKey}))
		ends = append(ends, e)
	}
	for _, e := range ends {
		var from uint32
		for range matoseMessages {
			w := e.next(verbs.Success)
			if w.Flags&verbs.WithGRH == 0 || w.ByteLen != grh+udaddySize || w.SrcQP != w.Imm {
				t.Errorf("datagram arrives as %+v", w)
			}
			from = w.SrcQP
		}
		e.tell(ah, from, udpQKey)
		e.completions(matoseMessages)
	}
	r.succeeds(t, programLimit)
	for _, e := range ends {
		e.drop()
	}
}

func udaddyClient(t *testing.T, g *guest, f family) {
	a := newAdapter(t, f.ours)
	r := g.program(t, udaddyArgs(f)...)
	g.listens(t)
	ah, err := a.pd.CreateAH(verbs.AddressVector{Addr: f.theirs})
	ok(t, err)
	var ends []*end
	for range udaddyQPs {
		e := a.end(verbs.UD)
		e.ready(udpQKey)
		for range matoseMessages {
			e.recv(1, a.mr.SGE(1<<20, grh+udaddySize))
		}
		e.id, err = a.dev.NewServiceID()
		ok(t, err)
		service, err := e.id.Resolve(within(t, await.Limit), netip.AddrPortFrom(f.theirs, 7174), nil)
		ok(t, err)
		e.tell(ah, service.QPN, service.QKey)
		ends = append(ends, e)
	}
	for _, e := range ends {
		e.completions(2 * matoseMessages)
	}
	r.succeeds(t, programLimit)
	for _, e := range ends {
		e.drop()
	}
}
