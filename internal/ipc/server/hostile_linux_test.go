package server_test

import (
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// raw is a program that speaks the protocol by hand.
type raw struct {
	*net.UnixConn
	t *testing.T
}

func dialRaw(t *testing.T, path string) raw {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return raw{c, t}
}

func goodHello() proto.Hello {
	return proto.Hello{
		Magic:    proto.Magic,
		Major:    proto.Major,
		Features: proto.FeatureCopier,
		Path:     command.MemoryCopier,
		Name:     proto.FixedName("raw"),
	}
}

// hello attaches and returns when arena 0 has come.
func (r raw) hello() raw {
	r.t.Helper()
	r.put(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(goodHello())))
	for op := proto.Opcode(0); op != proto.OpArena; {
		h, _, err := r.next()
		if err != nil {
			r.t.Fatal(err)
		}
		op = h.Op
	}
	return r
}

func (r raw) put(b []byte) { _, _ = r.Write(b) }

func (r raw) next() (proto.Header, []byte, error) {
	_ = r.SetReadDeadline(time.Now().Add(await.Limit))
	var buf []byte
	return proto.ReadFrame(r.UnixConn, &buf, proto.MaxFrame)
}

// end reads until the stream ends, and returns the reason given in the goodbye or in the refusal of hello.
func (r raw) end() string {
	r.t.Helper()
	reason := ""
	for {
		h, body, err := r.next()
		if os.IsTimeout(err) {
			r.t.Fatal("the driver did not disconnect the program")
		}
		if err != nil {
			return reason
		}
		switch {
		case h.Op == proto.OpGoodbye:
			if g, err := proto.Decode[proto.Goodbye](body); err == nil {
				reason = string(g.Reason[:g.Length])
			}
		case h.Flags&proto.FlagError != 0 && reason == "":
			reason = proto.DecodeError(body).Error()
		}
	}
}

// TestHostileFrames: a program that breaks the protocol is told why and disconnected. Others do not notice, and
// nothing of it is left.
func TestHostileFrames(t *testing.T) {
	h := &fake.Host{}
	// Only those who say nothing meet a driver that waits for a moment alone: the others might be too slow for it.
	_, path := fake.Serve(t, h, server.Config{HelloTimeout: await.Limit})
	silent := &fake.Host{}
	_, impatient := fake.Serve(t, silent, server.Config{HelloTimeout: 200 * time.Millisecond})
	good := dial(t, path, client.Options{})
	bad := func(op proto.Opcode, flags uint16, id uint64, body []byte) []byte {
		return proto.AppendFrame(nil, op, flags, id, body)
	}
	withHello := func(f func(*proto.Hello)) []byte {
		q := goodHello()
		f(&q)
		return bad(proto.OpHello, 0, 1, proto.Encode(q))
	}
	tests := []struct {
		name   string
		attach bool
		send   []byte
		reason string
	}{
		{"silence", false, nil, "timeout"},
		{"half a header", false, []byte{1, 2, 3}, "timeout"},
		{"rubbish", false, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "length"},
		{"command before hello", false, bad(proto.OpAllocPD, 0, 1, proto.Encode(proto.AdapterArgs{})), "before hello"},
		{"short hello", false, bad(proto.OpHello, 0, 1, []byte{1}), "body of 1 bytes"},
		{"magic", false, withHello(func(q *proto.Hello) { q.Magic++ }), "magic"},
		{"version", false, withHello(func(q *proto.Hello) { q.Major++ }), "version"},
		{"path", false, withHello(func(q *proto.Hello) { q.Path = 9 }), "memory path"},
		{"no copier, no nonce", false, withHello(func(q *proto.Hello) { q.Features, q.Path = 0, 0 }), "cannot reach"},
		{"nonce elsewhere", false, withHello(func(q *proto.Hello) { q.ProbeAddr, q.Path = 0x1000, command.MemoryProcessVM }), "process_vm"},
		{"second hello", true, bad(proto.OpHello, 0, 2, proto.Encode(goodHello())), "operation 1"},
		{"length 0", true, make([]byte, 16), "length 0"},
		{"length 4 GB", true, append([]byte{255, 255, 255, 255}, make([]byte, 12)...), "length 4294967295"},
		{"unknown operation", true, bad(999, 0, 1, nil), "operation 999"},
		{"driver's operation", true, bad(proto.OpEvents, 0, 1, nil), "operation 5"},
		{"flags", true, bad(proto.OpAllocPD, proto.FlagResponse, 1, proto.Encode(proto.AdapterArgs{})), "flags"},
		{"request id 0", true, bad(proto.OpAllocPD, 0, 0, proto.Encode(proto.AdapterArgs{})), "request id 0"},
		{
			"request id in use",
			true,
			append(
				bad(proto.OpCMListen, 0, 7, proto.Encode(proto.ListenArgs{})),
				bad(proto.OpCMListen, 0, 7, proto.Encode(proto.ListenArgs{}))...),
			"request id 7",
		},
		{"short body", true, bad(proto.OpCreateQP, 0, 1, []byte{1, 2}), "body of 2 bytes"},
		{"short domain", true, bad(proto.OpOpenXRCD, 0, 1, make([]byte, 23)), "body of 23 bytes"},
		{"long shared receive queue", true, bad(proto.OpCreateXRCSRQ, 0, 1, make([]byte, 25)), "body of 25 bytes"},
		{"queue that matches tags, cut", true, bad(proto.OpCreateTagSRQ, 0, 1, make([]byte, 23)), "body of 23 bytes"},
		{"long tag operation", true, bad(proto.OpTag, 0, 1, make([]byte, 121)), "body of 121 bytes"},
		{"target without a number", true, bad(proto.OpOpenQP, 0, 1, make([]byte, 4)), "body of 4 bytes"},
		{"long body", true, bad(proto.OpAllocPD, 0, 1, make([]byte, 2000)), "body of 2000 bytes"},
		{"credit not due", true, bad(proto.OpCredit, 0, 0, proto.Encode(proto.Credit{Events: 1})), "credits"},
		{"huge credit", true, bad(proto.OpCredit, 0, 0, proto.Encode(proto.Credit{Events: ^uint32(0)})), "credits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := path
			if tt.reason == "timeout" {
				to = impatient
			}
			r := dialRaw(t, to)
			if tt.attach {
				r.hello()
			}
			if tt.send != nil {
				r.put(tt.send)
			}
			if got := r.end(); !strings.Contains(got, tt.reason) {
				t.Errorf("reason %q, want one with %q", got, tt.reason)
			}
			await.Eventually(t, "torn down", func() bool { return h.Count() == 1 && silent.Count() == 0 })
			if _, err := good.AllocPD(ctx, 0); err != nil {
				t.Errorf("the other program: %v", err)
			}
		})
	}
}

// fds returns the number of this process's open descriptors.
func fds(t testing.TB) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// mappings returns the number of this process's mappings of shared memory.
func mappings(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "memfd:softvpi")
}

// TestHostileDescriptors: descriptors that a program sends do not stay open in the driver.
func TestHostileDescriptors(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{})
	r := dialRaw(t, path).hello()
	before := fds(t)
	rights := unix.UnixRights(make([]int, 100)...) // descriptor 0, a hundred times
	for i := range 50 {
		f := proto.AppendFrame(nil, proto.OpAllocPD, 0, uint64(i+1), proto.Encode(proto.AdapterArgs{}))
		if _, _, err := r.WriteMsgUnix(f, rights, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.next(); err != nil {
			t.Fatal(err)
		}
	}
	await.Eventually(t, "no more descriptors than before", func() bool { return fds(t) <= before })
}

// TestHostileNeverReads: a program that never reads is disconnected when its stream is full; others are served before
// and after.
func TestHostileNeverReads(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{WriteTimeout: time.Second})
	good := dial(t, path, client.Options{})
	r := dialRaw(t, path).hello()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := uint64(1); ; i++ {
			if _, err := r.Write(proto.AppendFrame(nil, proto.OpDestroy, 0, i, proto.Encode(proto.DestroyArgs{Kind: 99}))); err != nil {
				return
			}
		}
	}()
	await.Eventually(t, "disconnected", func() bool { return h.Count() == 1 })
	<-stopped
	if _, err := good.AllocPD(ctx, 0); err != nil {
		t.Error(err)
	}
}

// TestStopWithAProgramThatDoesNotRead: the driver can stop while a program does not read.
func TestStopWithAProgramThatDoesNotRead(t *testing.T) {
	h := &fake.Host{}
	srv, path := fake.Serve(t, h, server.Config{WriteTimeout: time.Hour})
	r := dialRaw(t, path).hello()
	stopped := make(chan struct{})
	var sent atomic.Int64
	go func() {
		defer close(stopped)
		for i := uint64(1); ; i++ {
			if _, err := r.Write(proto.AppendFrame(nil, proto.OpDestroy, 0, i, proto.Encode(proto.DestroyArgs{Kind: 99}))); err != nil {
				return
			}
			sent.Add(1)
		}
	}()
	var last int64
	await.Eventually(t, "the streams are full", func() bool {
		time.Sleep(50 * time.Millisecond)
		now := sent.Load()
		full := now == last && now > 0
		last = now
		return full
	})
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	r.Close()
	<-stopped
}

// TestHostileConnectionFlood: connections beyond MaxClients are refused or closed, and the first program is served.
func TestHostileConnectionFlood(t *testing.T) {
	h := &fake.Host{}
	srv, path := fake.Serve(t, h, server.Config{MaxClients: 2})
	good := dial(t, path, client.Options{})
	var flood []net.Conn
	for range 100 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		flood = append(flood, c)
	}
	if _, err := good.AllocPD(ctx, 0); err != nil {
		t.Error(err)
	}
	if n := srv.Clients(); n > 2+server.MaxRefusals {
		t.Errorf("%d connections are kept, want at most %d", n, 2+server.MaxRefusals)
	}
	for _, c := range flood {
		c.Close()
	}
	await.Eventually(t, "all gone", func() bool { return srv.Clients() == 1 })
	await.Eventually(t, "another may attach", func() bool {
		c, err := client.Dial(ctx, path, client.Options{})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestProbeFallsBackToTheCopier: if the driver cannot reach the program's memory with process_vm_readv, both sides
// use the copier.
func TestProbeFallsBackToTheCopier(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{})
	for name, addr := range map[string]uint64{"nothing there": 0x1000, "wrong nonce": 0} {
		if addr == 0 {
			_, addr = fake.Memory(t, 64)
		}
		r := dialRaw(t, path)
		q := goodHello()
		q.Path, q.ProbeAddr, q.Nonce = 0, addr, [16]byte{1}
		r.put(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(q)))
		_, body, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		w, err := proto.Decode[proto.Welcome](body)
		if err != nil || w.Path != command.MemoryCopier || w.CopierBytes != reach.CopierSize {
			t.Errorf("%s: error %v, welcome %+v; want the copier", name, err, w)
		}
		if got := h.Only(t).Config.MemoryPath; got != command.MemoryCopier {
			t.Errorf("%s: the driver's memory path is %s, want the copier", name, got)
		}
		r.Close()
		await.Eventually(t, "gone", func() bool { return h.Count() == 0 })
	}
}

// TestHostileNeverTakesEvents: a program that never takes events costs the driver its bounded queue only; its
// commands are carried out.
func TestHostileNeverTakesEvents(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{WriteTimeout: time.Second})
	c := dial(t, path, client.Options{})
	s := h.Only(t)
	for range cap(s.Pending) {
		s.Pending <- command.Event{}
	}
	if _, err := c.AllocPD(ctx, 0); err != nil { // commands still work
		t.Error(err)
	}
	if left := len(s.Pending); left < cap(s.Pending)-proto.EventCredits-proto.MaxPush {
		t.Errorf("%d events left the driver", cap(s.Pending)-left)
	}
}
