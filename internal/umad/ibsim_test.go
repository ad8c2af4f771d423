package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// server is the other end of the protocol for one client, with one node that answers every MAD by itself.
type server struct {
	t         *testing.T
	ctl, data *net.UDPConn
	gone      atomic.Bool
	refuse    bool
	broken    bool // answers the control socket with something outside the protocol
}

// newServer opens the two ports of a server on a loopback address.
func newServer(t *testing.T) *server {
	for range 50 {
		ctl, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		data, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: ctl.LocalAddr().(*net.UDPAddr).Port + 4})
		if err != nil {
			ctl.Close()
			continue
		}
		t.Cleanup(func() { ctl.Close(); data.Close() })
		s := &server{t: t, ctl: ctl, data: data}
		return s
	}
	t.Fatal("no two ports four apart are free")
	return nil
}

func (s *server) options() IbsimOptions {
	return IbsimOptions{Server: "127.0.0.1", Port: s.ctl.LocalAddr().(*net.UDPAddr).Port, Host: "node", IsSM: true}
}

func (s *server) start() {
	go func() {
		var m [200]byte
		for {
			n, from, err := s.ctl.ReadFromUDP(m[:])
			if err != nil {
				return
			}
			if s.broken {
				n = 12
			} else {
				s.control(m[:n])
			}
			s.ctl.WriteToUDP(m[:n], from)
		}
	}()
	go func() {
		var m [400]byte
		for {
			n, from, err := s.data.ReadFromUDP(m[:])
			if err != nil {
				return
			}
			s.data.WriteToUDP([]byte("short"), from)
			if binary.BigEndian.Uint16(m[0:]) == 9 {
				binary.BigEndian.PutUint32(m[16:], ibsimTimedOut)
			} else {
				m[32+3] |= responseBit
				n := mad.NodeInfo{NodeType: mad.NodeCA, NodeGUID: 0x1234, NumPorts: 2}
				copy(m[32+64:], n.Append(nil))
			}
			s.data.WriteToUDP(m[:n], from)
		}
	}()
}

func (s *server) control(m []byte) {
	if len(m) != ibsimControlLen || binary.LittleEndian.Uint32(m) != ibsimMagic {
		s.t.Errorf("control message %x", m)
	}
	data := m[16:]
	switch kind := binary.LittleEndian.Uint32(m[8:]); kind {
	case ibsimConnect:
		if s.refuse {
			binary.LittleEndian.PutUint32(m[8:], 0)
		}
		if got := strings.TrimRight(string(data[12:44]), "\x00"); got != "node" || binary.LittleEndian.Uint32(data[8:]) != 1 {
			s.t.Errorf("the client is %q, with a subnet manager: %d", got, binary.LittleEndian.Uint32(data[8:]))
		}
		binary.LittleEndian.PutUint32(data, 3)
	case ibsimVendor:
		binary.LittleEndian.PutUint32(data[8:], 0xa1)
		binary.LittleEndian.PutUint64(data[16:], 1)
	case ibsimPortInfo:
		p := mad.PortInfo{LID: 5, LocalPortNum: 2}
		copy(data, p.Append(nil))
	case ibsimPKeys:
		binary.BigEndian.PutUint16(data, 0xffff)
	case ibsimSetIsSM:
		if binary.LittleEndian.Uint32(data) != 1 {
			s.t.Errorf("the client is a subnet manager: %d", binary.LittleEndian.Uint32(data))
		}
	case ibsimDisconnect:
		s.gone.Store(true)
	default:
		s.t.Errorf("control message of type %d", kind)
	}
}

func TestIbsimOverUDP(t *testing.T) {
	s := newServer(t)
	s.start()
	p, err := OpenIbsim(s.options())
	if err != nil {
		t.Fatal(err)
	}
	d := p.Device()
	if d.Node.NodeGUID != 0x1234 || d.Port.LID != 5 || d.PortNum != 2 || d.Hardware != "a1" || d.Firmware != "1" || d.PKeys[0] != 0xffff {
		t.Errorf("the device is %+v", d)
	}
	a, err := p.Call(context.Background(), Address{LID: 3}, nodeInfoRequest(), DefaultTiming)
	if err != nil || a.MAD[3] != mad.MethodGetResp {
		t.Errorf("received %v, %v; want the response", a, err)
	}
	if _, err = p.Call(context.Background(), Address{LID: 9}, nodeInfoRequest(), DefaultTiming); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v, want ErrTimeout for a MAD that comes back", err)
	}
	if err := p.Close(); err != nil || !s.gone.Load() {
		t.Errorf("%v; the server knows that the client is gone: %v", err, s.gone.Load())
	}
}

func TestIbsimRefuses(t *testing.T) {
	s := newServer(t)
	s.refuse = true
	s.start()
	if _, err := OpenIbsim(s.options()); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), `no node "node"`) {
		t.Errorf("%v, want a refusal: no node \"node\"", err)
	}
	b := newServer(t)
	b.broken = true
	b.start()
	if _, err := OpenIbsim(b.options()); err == nil || !strings.Contains(err.Error(), "do not follow its protocol") {
		t.Errorf("%v, want an error about the protocol", err)
	}
	if _, err := OpenIbsim(IbsimOptions{Server: "127.0.0.1", Host: strings.Repeat("x", 32)}); err == nil ||
		!strings.Contains(err.Error(), "up to 31") {
		t.Errorf("%v, want that a name has up to 31 characters", err)
	}
}

func TestIbsimLocalNeedsAServer(t *testing.T) {
	_, err := OpenIbsim(IbsimOptions{Socket: "softvpi test, none of that name"})
	if err == nil {
		t.Fatal("opened a server that is not there")
	}
	if want := "IBSIM_SERVER_NAME"; runtime.GOOS != "linux" && !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want a word on %s", err, want)
	}
}

// TestIsSMWithoutManager: a node without a subnet manager does not have the attribute SMInfo (IBA 14.2.5).
func TestIsSMWithoutManager(t *testing.T) {
	s := mad.NewSMP(mad.MethodGet, mad.AttrSMInfo, 0, 5)
	if err := s.Direct([]uint8{1}); err != nil {
		t.Fatal(err)
	}
	d := Datagram{MAD: [mad.Len]byte(s.Append(nil))}
	a, err := mad.ParseSMP(unsupported(&d)[:])
	if err != nil || !a.Returning() || a.StatusCode() != mad.StatusAttributeUnsupported || a.Method != mad.MethodGetResp {
		t.Errorf("received %+v, %v; want the status of an unsupported attribute", a.Header, err)
	}
	d.MAD[3] = mad.MethodTrap
	if unsupported(&d) != nil {
		t.Error("a trap was answered")
	}
}

func TestEnvironment(t *testing.T) {
	for _, n := range []string{socket.Variable, variableSocket, variableServer, variablePort, variableHost} {
		t.Setenv(n, "")
	}
	if v, there := os.LookupEnv(variableIsSM); there {
		os.Unsetenv(variableIsSM)
		t.Cleanup(func() { os.Setenv(variableIsSM, v) })
	}
	if _, err := Open(); !errors.Is(err, ErrNoFabric) {
		t.Errorf("%v, want ErrNoFabric", err)
	}
	t.Setenv(variableHost, "h")
	if o, err := FromEnvironment(); err != nil || o != (Options{Ibsim: IbsimOptions{Host: "h"}}) || ibsimBase(o.Ibsim) != "sim" {
		t.Errorf("options %+v, %v; want the ibsim at host h", o, err)
	}
	t.Setenv(variableServer, "s")
	t.Setenv(variableIsSM, "")
	for text, want := range map[string]int{"": 7070, "8000": 8000} {
		t.Setenv(variablePort, text)
		if o, err := FromEnvironment(); err != nil || o.Ibsim.port() != want || !o.Ibsim.IsSM {
			t.Errorf("%q: options %+v, %v; want port %d and the subnet manager", text, o, err, want)
		}
	}
	for _, text := range []string{"0", "x", "65530"} {
		t.Setenv(variablePort, text)
		if _, err := FromEnvironment(); err == nil || !strings.Contains(err.Error(), variablePort) {
			t.Errorf("%q: %v, want an error about %s", text, err, variablePort)
		}
	}
	t.Setenv(socket.Variable, "/run/fabric.sock")
	t.Setenv(socket.NodeVariable, "hca2")
	if o, err := FromEnvironment(); err != nil || o != (Options{Service: ServiceOptions{Socket: "/run/fabric.sock", Node: "hca2"}}) {
		t.Errorf("options %+v, %v; want the service at /run/fabric.sock", o, err)
	}
}

// FuzzIbsimReceive: only datagrams of the protocol's length are received.
func FuzzIbsimReceive(f *testing.F) {
	f.Add(make([]byte, ibsimDataLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &ibsim{data: &canned{b}}
		var d Datagram
		if err := c.Receive(&d); err == nil && len(b) != ibsimDataLen {
			t.Fatalf("%d bytes were a datagram", len(b))
		}
	})
}

// canned is a socket with one datagram.
type canned struct{ b []byte }

func (c *canned) Read(b []byte) (int, error) {
	if c.b == nil {
		return 0, net.ErrClosed
	}
	n := copy(b, c.b)
	c.b = nil
	return n, nil
}
func (c *canned) Write(b []byte) (int, error) { return len(b), nil }
func (c *canned) Close() error                { return nil }
