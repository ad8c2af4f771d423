package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// world is a server of the small fabric.
type world struct {
	*testing.T
	*Server
	rack *live.Rack
}

func serve(t *testing.T) *world {
	t.Helper()
	f, err := os.Open("../../fabric/topology/testdata/small.net")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	top, err := topology.ReadNetlist(f)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, rack: live.New(fabric.New(top, rand.New(rand.NewPCG(1, 2)).Uint64), live.Options{})}
	dir, err := os.MkdirTemp("", "umad")
	if err != nil {
		t.Fatal(err)
	}
	if w.Server, err = Listen(filepath.Join(dir, "s"), w.rack); err != nil {
		t.Fatal(err)
	}
	leave := w.rack.Attend(w.Server)
	t.Cleanup(func() {
		leave()
		w.Server.Close()
		w.rack.Close()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		os.RemoveAll(dir)
	})
	return w
}

func (w *world) open(o umad.ServiceOptions) *umad.Port {
	w.Helper()
	o.Socket = w.Path()
	p, err := umad.OpenService(o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { p.Close() })
	return p
}

// smp asks a node for an attribute, once: nothing is lost on the way, however late the answer is.
func smp(p *umad.Port, attribute uint16, path ...uint8) (mad.SMP, error) {
	return smpWithin(p, await.Limit, attribute, path...)
}

func smpWithin(p *umad.Port, limit time.Duration, attribute uint16, path ...uint8) (mad.SMP, error) {
	m := mad.NewSMP(mad.MethodGet, attribute, 0, 0)
	if err := m.Direct(path); err != nil {
		return m, err
	}
	d, err := p.Call(context.Background(), umad.Address{LID: ib.LIDPermissive}, (*[mad.Len]byte)(m.Append(nil)),
		umad.Timing{Timeout: limit, Tries: 1})
	if err != nil {
		return m, err
	}
	return mad.ParseSMP(d.MAD[:])
}

// TestPorts: a program sees its node as its own machine, with all ports, and reaches the fabric through each of them.
func TestPorts(t *testing.T) {
	w := serve(t)
	for _, c := range []struct {
		o       umad.ServiceOptions
		port    int
		problem string
	}{
		{umad.ServiceOptions{}, 1, ""},
		{umad.ServiceOptions{Node: "hca4"}, 1, ""},
		{umad.ServiceOptions{Node: "hca4", Port: 2}, 2, ""},
		{umad.ServiceOptions{Node: "sw1", Adapter: adapterName}, 0, ""},
		{umad.ServiceOptions{Node: "hca9"}, 0, "no such node"},
		{umad.ServiceOptions{Adapter: "mlx5_0"}, 0, "no such node or adapter"},
		{umad.ServiceOptions{Port: 3}, 0, "invalid argument"},
		{umad.ServiceOptions{Node: strings.Repeat("x", 99)}, 0, "allowed: up to"},
	} {
		c.o.Socket = w.Path()
		p, err := umad.OpenService(c.o)
		if err != nil || c.problem != "" {
			if err == nil || c.problem == "" || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%+v: %v, want %q", c.o, err, c.problem)
			}
			continue
		}
		d := p.Device()
		if d.PortNum != c.port || d.Name != adapterName || d.Node.PortGUID == 0 {
			t.Errorf("%+v opens %+v", c.o, d)
		}
		m, err := smp(p, mad.AttrNodeInfo)
		n, _ := mad.ParseNodeInfo(m.Data[:])
		if err != nil || n.NodeGUID != d.Node.NodeGUID || n.LocalPortNum != uint8(c.port) {
			t.Errorf("%+v: the node answers %+v, %v", c.o, n, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	nowhere := w.open(umad.ServiceOptions{})
	if _, err := smpWithin(nowhere, 100*time.Millisecond, mad.AttrNodeInfo, 1, 77); !errors.Is(err, umad.ErrTimeout) {
		t.Errorf("a way that is not there: %v", err)
	}
	await.Eventually(w, "closed ports are gone", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.places) <= 1 })
}

// TestManagers: a subnet manager gets the requests for it, only one can run at a port, and the port shows the
// capability as long as it runs.
func TestManagers(t *testing.T) {
	w := serve(t)
	is := func() bool {
		var mask uint32
		w.rack.Do(func(_ clock.Time, f *fabric.Fabric) { mask = f.PortInfo(fabric.Place{Node: 0, Port: 1}).CapabilityMask })
		return mask&mad.CapIsSM != 0
	}
	m := w.open(umad.ServiceOptions{Node: "hca1", Manager: true})
	await.Eventually(w, "IsSM is set", is)
	if _, err := umad.OpenService(umad.ServiceOptions{Socket: w.Path(), Node: "hca1", Manager: true}); err == nil {
		t.Error("a second manager was accepted at one port")
	}
	if err := m.Serve(mad.ClassSubnetDir, func(d *umad.Datagram) *[mad.Len]byte {
		a := d.MAD
		a[3], a[4], a[64] = mad.MethodGetResp, 0x80, 0x55
		return &a
	}); err == nil {
		t.Error("an agent was registered for what the manager has already")
	}
	asking := w.open(umad.ServiceOptions{Node: "hca2"})
	a, err := smp(asking, mad.AttrSMInfo, 1, 1)
	if err != nil || a.Data[0] != 0x55 {
		t.Errorf("the answer's data begin with %x, %v; want 55", a.Data[0], err)
	}
	m.Close()
	await.Eventually(w, "IsSM is taken away", func() bool { return !is() })
}

// hostile is a connection that sends what it likes.
func hostile(t *testing.T, w *world) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: w.Path(), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ended waits until the server has ended a connection.
func ended(t *testing.T, what string, c *net.UnixConn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: the connection was not ended", what)
			return
		}
		if err != nil || n == 0 {
			return
		}
	}
}

func openHostile(t *testing.T, w *world) *net.UnixConn {
	t.Helper()
	c := hostile(t, w)
	r := socket.Request{Kind: socket.Open, Port: 1}
	b := make([]byte, 64)
	if _, err := c.Write(r.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(b); err != nil || n != socket.AnswerLen {
		t.Fatal(n, err)
	}
	return c
}

// TestHostileClients: whatever does not belong to the protocol ends the connection, and nothing else.
func TestHostileClients(t *testing.T) {
	w := serve(t)
	bystander := w.open(umad.ServiceOptions{Node: "hca2"})
	version := (&socket.Request{Kind: socket.List}).Append(nil)
	version[4] = 9
	for name, b := range map[string][]byte{
		"nothing sensible":  []byte("hello"),
		"another version":   version,
		"an unknown kind":   (&socket.Request{Kind: 77, Port: 1}).Append(nil),
		"a MAD before open": append([]byte{socket.Send, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 320)...),
		"too long":          make([]byte, socket.MaxMessage+100),
	} {
		c := hostile(t, w)
		_, _ = c.Write(b)
		ended(t, name, c)
	}
	for name, b := range map[string][]byte{
		"an unknown kind": make([]byte, 64), "a short MAD": {socket.Send, 0, 0, 0, 0, 0, 0, 0, 1, 2},
		"a short registration": {socket.Register, 0, 0, 0, 1, 0, 0, 0, 9},
	} {
		c := openHostile(t, w)
		_, _ = c.Write(b)
		ended(t, name, c)
	}
	// Descriptors that are not a sealed memory file, and more than one of them.
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	m := append([]byte{socket.Send, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 320)...)
	h := agent.Header{Length: 100000}
	h.Append(m[:8])
	c := openHostile(t, w)
	if _, _, err := c.WriteMsgUnix(m, unix.UnixRights(pipe[0], pipe[1], pipe[0]), nil); err != nil {
		t.Fatal(err)
	}
	ended(t, "a pipe in place of a memory file", c)
	// Answers go where the client says; a socket that takes nothing harms only its owner.
	c = openHostile(t, w)
	r := agent.Registration{QPN: 1}
	if _, _, err := c.WriteMsgUnix(socket.AppendRegistration(nil, &r), unix.UnixRights(pipe[1]), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := smp(bystander, mad.AttrNodeInfo, 1); err != nil {
		t.Errorf("a bystander: %v", err)
	}
}

// TestDeafClient: a program that reads nothing loses what it does not read, and holds up nobody.
func TestDeafClient(t *testing.T) {
	w := serve(t)
	c := openHostile(t, w)
	r := agent.Registration{QPN: 0, Raw: true}
	if _, err := c.Write(socket.AppendRegistration(nil, &r)); err != nil {
		t.Fatal(err)
	}
	m := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	if err := m.Direct(nil); err != nil {
		t.Fatal(err)
	}
	h := agent.Header{LID: ib.LIDPermissive}
	b := append(h.Append([]byte{socket.Send, 0, 0, 0, 0, 0, 0, 0}), m.Append(nil)...)
	for range 5000 {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := smp(w.open(umad.ServiceOptions{Node: "hca2"}), mad.AttrNodeInfo, 1); err != nil {
		t.Errorf("a bystander: %v", err)
	}
	in := make([]byte, 512)
	for range 5000 {
		if n, err := c.Read(in); err != nil || n != agent.HeaderLen+mad.Len {
			t.Fatal(n, err)
		}
	}
}

// TestListen: the socket of a server that has ended is replaced, that of a running one is not.
func TestListen(t *testing.T) {
	w := serve(t)
	if _, err := Listen(w.Path(), w.rack); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("two servers: %v", err)
	}
	dead := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: dead}); err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	s, err := Listen(dead, w.rack)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	var none *Server
	if none.Path() != "" || none.Close() != nil {
		t.Error("a server that was never started has a path, or cannot be closed")
	}
}
