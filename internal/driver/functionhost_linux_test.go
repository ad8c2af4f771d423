package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// vm is a virtual machine whose card is a virtual function: it has the other side of the driver's socket.
type vm struct {
	net.Conn
	stream bool
	mac    eth.MAC
	to     string // the driver's datagram socket
	got    chan []byte
}

// datagramVM has the datagram socket of which the driver's is at path.
func datagramVM(t *testing.T, path, peer, mac string) *vm {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: peer, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	return newVM(t, &vm{Conn: c, to: path}, mac)
}

// streamVM connects to the driver's stream socket.
func streamVM(t *testing.T, path, mac string) *vm {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return newVM(t, &vm{Conn: c, stream: true}, mac)
}

func newVM(t *testing.T, m *vm, mac string) *vm {
	t.Helper()
	t.Cleanup(func() { m.Close() })
	a, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	m.mac = eth.MAC(a)
	return m
}

// reads takes all that arrives from now on.
func (m *vm) reads() *vm {
	m.got = make(chan []byte, 4096)
	go func() {
		b := make([]byte, 70000)
		for {
			n, err := m.next(b)
			if err != nil {
				return
			}
			select {
			case m.got <- slices.Clone(b[:n]):
			default:
			}
		}
	}()
	return m
}

func (m *vm) next(b []byte) (int, error) {
	if !m.stream {
		return m.Read(b)
	}
	var length [4]byte
	if _, err := io.ReadFull(m, length[:]); err != nil {
		return 0, err
	}
	return io.ReadFull(m, b[:binary.BigEndian.Uint32(length[:])])
}

// sends sends a frame of IPv4, from its MAC or another one.
func (m *vm) sends(t *testing.T, from, to eth.MAC, payload string) {
	t.Helper()
	h := eth.Ethernet{Dst: to, Src: from, Type: eth.TypeIPv4}
	b := make([]byte, h.Len(), 100)
	h.Put(b)
	b = append(b, payload...)
	b = append(b, make([]byte, max(0, 60-len(b)))...)
	m.puts(t, b)
}

func (m *vm) puts(t *testing.T, b []byte) {
	t.Helper()
	var err error
	if m.stream {
		_, err = m.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	} else {
		_, err = m.Conn.(*net.UnixConn).WriteToUnix(b, &net.UnixAddr{Name: m.to, Net: "unixgram"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gets waits until a frame arrives that another sends again and again, and fails if one with what must not arrive comes before.
func (m *vm) gets(t *testing.T, payload, never string, send func()) {
	t.Helper()
	await.Eventually(t, payload+" arrives", func() bool {
		send()
		for late := time.After(20 * time.Millisecond); ; {
			select {
			case b := <-m.got:
				if never != "" && bytes.Contains(b, []byte(never)) {
					t.Fatalf("%q arrives", never)
				}
				if bytes.Contains(b, []byte(payload)) {
					return true
				}
			case <-late:
				return false
			}
		}
	})
}

// functionNamed returns the status of a virtual function.
func functionNamed(t *testing.T, d *Driver, name string) api.FunctionStatus {
	t.Helper()
	for _, f := range d.Functions() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no function %s", name)
	return api.FunctionStatus{}
}

// stands waits until the state of a function's host is so.
func stands(t *testing.T, d *Driver, name, state string) {
	t.Helper()
	await.Eventually(t, "the host of "+name+" is "+state, func() bool { return functionNamed(t, d, name).HostState == state })
}

const redMAC, blueMAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b"

// machines gives two virtual functions virtual machines as hosts, and returns these with the directory of their sockets.
func machines(t *testing.T, d *Driver) (red, blue *vm, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r, b := filepath.Join(dir, "r"), filepath.Join(dir, "b")
	create(t, d, "a", "red", "mac="+redMAC, "address=192.0.2.10/24", "rdma=off", "host=datagram:"+r)
	create(t, d, "a", "blue", "mac="+blueMAC, "address=192.0.2.11/24", "rdma=off", "host=stream:"+b)
	stands(t, d, "red", "waiting")
	stands(t, d, "blue", "waiting")
	red, blue = datagramVM(t, r, r+".peer", redMAC), streamVM(t, b, blueMAC)
	stands(t, d, "red", "attended")
	stands(t, d, "blue", "attended")
	return red, blue, dir
}

// TestFunctions_Machines: virtual functions are the cards of virtual machines, by sockets of both kinds, under the rules of the switch in
// the port. Machines come and go, and stay connected while the function and its adapter are made anew.
func TestFunctions_Machines(t *testing.T) {
	d := start(t, hosting(t))
	defer stop(t, d)
	red, blue, dir := machines(t, d)
	red, blue = red.reads(), blue.reads()
	blue.gets(t, "to the stream", "", func() { red.sends(t, red.mac, blue.mac, "to the stream") })
	red.gets(t, "to the datagrams", "", func() { blue.sends(t, blue.mac, red.mac, "to the datagrams") })
	red.gets(t, "to everybody", "", func() { blue.sends(t, blue.mac, eth.Broadcast, "to everybody") })
	group := eth.MAC{0x33, 0x33, 0xff, 0, 0, 0x0a} // that its neighbours ask with IPv6, and no socket says that it is in it
	red.gets(t, "to a group", "", func() { blue.sends(t, blue.mac, group, "to a group") })

	blue.gets(t, "honest", "spoofed", func() {
		red.sends(t, eth.MAC{2, 5: 0x77}, blue.mac, "spoofed")
		red.sends(t, red.mac, blue.mac, "honest")
	})
	if n := functionNamed(t, d, "red").Counters["spoofed_mac"]; n == 0 {
		t.Error("frames from another's address are not counted")
	}
	third := func(name, mac, vlan string) *vm {
		at := filepath.Join(dir, name)
		create(t, d, "a", name, "mac="+mac, "vlan="+vlan, "host=datagram:"+at)
		return datagramVM(t, at, at+".peer", mac).reads()
	}
	change(t, d, "red", "vlan=7")
	green, white := third("green", "02:00:00:00:00:0c", "7"), third("white", "02:00:00:00:00:0d", "0")
	green.gets(t, "in VLAN 7", "", func() { red.sends(t, red.mac, eth.Broadcast, "in VLAN 7") })
	blue.gets(t, "in none", "in VLAN 7", func() { white.sends(t, white.mac, eth.Broadcast, "in none") })
	change(t, d, "red", "vlan=0")

	blue.Close()
	stands(t, d, "blue", "waiting")
	blue = streamVM(t, filepath.Join(dir, "b"), blueMAC).reads()
	stands(t, d, "blue", "attended")
	blue.gets(t, "to the next one", "", func() { red.sends(t, red.mac, blue.mac, "to the next one") })
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	blue.gets(t, "after a restart", "", func() { red.sends(t, red.mac, blue.mac, "after a restart") })
	blue.puts(t, bytes.Repeat([]byte{0xff}, 100)) // a frame
	if _, err := blue.Write(bytes.Repeat([]byte{0xff}, 100)); err != nil {
		t.Fatal(err)
	}
	stands(t, d, "blue", "waiting") // no frame is that long
	change(t, d, "blue", "host=none")
	if _, err := os.Stat(filepath.Join(dir, "b")); !os.IsNotExist(err) {
		t.Errorf("the socket of a host that is gone: %v", err)
	}
	if f := functionNamed(t, d, "blue"); f.Host != "" || f.HostState != "" {
		t.Errorf("%+v", f)
	}
}

// TestFunctions_MachineRoCE: RoCE to a virtual function without RDMA is its machine's; one with RDMA keeps it.
func TestFunctions_MachineRoCE(t *testing.T) {
	d := start(t, hosting(t))
	defer stop(t, d)
	red, blue, _ := machines(t, d)
	red, blue = red.reads(), blue.reads()
	roce := func(payload string) func() {
		return func() {
			h := eth.Ethernet{Dst: blue.mac, Src: red.mac, Type: eth.TypeIPv4}
			b := h.Append(nil)
			b = append(b, make([]byte, eth.IPv4Len+eth.UDPLen)...)
			p := b[h.Len():]
			p[0], p[8], p[9] = 0x45, 64, byte(eth.ProtocolUDP)
			binary.BigEndian.PutUint16(p[2:], uint16(eth.IPv4Len+eth.UDPLen+32))
			binary.BigEndian.PutUint16(p[eth.IPv4Len+2:], eth.PortRoCEv2)
			binary.BigEndian.PutUint16(p[eth.IPv4Len+4:], eth.UDPLen+32)
			eth.IPv4(p).SetChecksum()
			red.puts(t, append(b, fmt.Sprintf("%-32s", payload)...))
		}
	}
	blue.gets(t, "RoCE of the machine", "", roce("RoCE of the machine"))
	change(t, d, "blue", "rdma=on")
	blue.gets(t, "something else", "RoCE of the function", func() {
		roce("RoCE of the function")()
		red.sends(t, red.mac, blue.mac, "something else")
	})
	change(t, d, "blue", "rdma=off")
	blue.gets(t, "RoCE again", "", roce("RoCE again"))
}

// TestFunctions_MachineStuck: what a machine does not read is dropped and counted, and others go on.
func TestFunctions_MachineStuck(t *testing.T) {
	d := start(t, hosting(t))
	defer stop(t, d)
	red, blue, _ := machines(t, d)
	red = red.reads() // blue reads nothing
	payload := strings.Repeat("x", 1400)
	await.Eventually(t, "frames are dropped", func() bool {
		for range 500 {
			red.sends(t, red.mac, blue.mac, payload)
		}
		return functionNamed(t, d, "blue").Counters["host_dropped"] > 0
	})
	red.gets(t, "the other way", "", func() { blue.sends(t, blue.mac, red.mac, "the other way") })
	blue = blue.reads()
	blue.gets(t, "it reads again", "", func() { red.sends(t, red.mac, blue.mac, "it reads again") })
}

// TestFunctions_HostKept: the next driver gives virtual functions the hosts that they had, by whichever setting. A group's members have
// the socket too.
func TestFunctions_HostKept(t *testing.T) {
	cfg := hosting(t)
	d := start(t, cfg)
	at := filepath.Join(filepath.Dir(cfg.Socket), "host")
	create(t, d, "a", "red", "host=datagram:"+at, "hostpeer="+at+".machine", fmt.Sprint("group=", os.Getgid()))
	create(t, d, "a", "blue", "host=datagram:"+at+".no")
	change(t, d, "blue", "host=stream:"+at+".b", "hostpeer=none")
	change(t, d, "blue", "tap=none") // it has none
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	for name, want := range map[string][2]string{"red": {"datagram:" + at, at + ".machine"}, "blue": {"stream:" + at + ".b", ""}} {
		if f := functionNamed(t, d, name); f.Host != want[0] || f.HostPeer != want[1] || f.Link != "auto" || f.HostState != "waiting" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	mode := func(want os.FileMode) {
		t.Helper()
		if s, err := os.Stat(at); err != nil || s.Mode().Perm() != want {
			t.Errorf("the socket has mode %v, %v; want %v", s.Mode(), err, want)
		}
	}
	mode(0o660)
	change(t, d, "red", "group=none")
	mode(0o600)
}

// TestFunctions_HostRefused: what is wrong about a host is named, and nothing of others' is touched.
func TestFunctions_HostRefused(t *testing.T) {
	cfg := hosting(t)
	dir := filepath.Dir(cfg.Socket)
	at := filepath.Join(dir, "x")
	cfg.Adapters[1].Host = "datagram:" + filepath.Join(dir, "pf")
	d := start(t, cfg)
	defer stop(t, d)
	create(t, d, "a", "has", "host=datagram:"+at)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, c := range []struct {
		want  string
		words []string
	}{
		{`host is "x"`, []string{"host=x"}}, {`host is "stream:x"`, []string{"host=stream:x"}}, {`host is "tap:a/b"`, []string{"host=tap:a/b"}},
		{`host is "disk:/x"`, []string{"host=disk:/x"}}, {`hostpeer is "x"`, []string{"host=datagram:/x", "hostpeer=x"}},
		{`hostpeer is "/x"`, []string{"host=datagram:/x", "hostpeer=/x"}}, {`hostpeer is "/y"`, []string{"host=stream:/x", "hostpeer=/y"}},
		{`netns is "z"`, []string{"host=stream:/x", "netns=z"}}, {"tap, host is", []string{"host=stream:/x", "tap=y"}},
		{"a path that nobody has", []string{"host=stream:" + cfg.Socket}}, {"a path that nobody has", []string{"host=datagram:" + cfg.Socket}},
		{"a path that nobody has", []string{"host=datagram:" + filepath.Join(dir, "file")}},
		{"a path that nobody has", []string{"host=datagram:" + other.Addr().String()}},
		{"in a directory that there is", []string{"host=stream:/no such/x"}},
		{"no adapter and no other virtual function has", []string{"host=stream:" + at}},
		{"no adapter and no other virtual function has", []string{"host=datagram:" + at + ".peer"}},
		{"no adapter and no other virtual function has", []string{"host=datagram:" + at + "2", "hostpeer=" + at}},
		{"no adapter and no other virtual function has", []string{"host=stream:" + filepath.Join(dir, "pf.peer")}},
	} {
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "bad", Settings: c.words}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.words, err, c.want)
		}
		if strings.Contains(c.words[0], at) {
			continue // which it has itself
		}
		if err := d.SetFunction(api.FunctionRequest{Name: "has", Settings: c.words}); err == nil || functionNamed(t, d, "has").HostState != "waiting" {
			t.Errorf("%q: it is changed, or lost: %v", c.words, err)
		}
	}
	for _, path := range []string{cfg.Socket, filepath.Join(dir, "file"), other.Addr().String()} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestFunctions_MachineAsks: a machine that asks where the addresses of RDMA functions at its port are is told, in its VLAN alone.
func TestFunctions_MachineAsks(t *testing.T) {
	d := start(t, hosting(t))
	defer stop(t, d)
	red, _, _ := machines(t, d)
	red = red.reads()
	const green = "02:00:00:00:00:0c"
	create(t, d, "a", "green", "mac="+green, "address=192.0.2.12/24")
	create(t, d, "a", "apart", "mac=02:00:00:00:00:0d", "address=192.0.2.13/24", "vlan=7")
	ask := func(addr string) {
		q := eth.ARP{Operation: eth.ARPRequest, SenderMAC: red.mac, SenderIP: netip.MustParseAddr("192.0.2.10"), TargetIP: netip.MustParseAddr(addr)}
		h := eth.Ethernet{Dst: eth.Broadcast, Src: red.mac, Type: eth.TypeARP}
		red.puts(t, append(q.Append(h.Append(nil)), make([]byte, 18)...))
	}
	for addr, mac := range map[string]string{"192.0.2.12": green, "192.0.2.1": d.Status().Adapters[0].MAC} {
		m, err := net.ParseMAC(mac)
		if err != nil {
			t.Fatal(err)
		}
		apart := string(append([]byte{2, 5: 0x0d}, 192, 0, 2, 13)) // MAC and address of the answer
		red.gets(t, string(append(m, netip.MustParseAddr(addr).AsSlice()...)), apart, func() {
			ask("192.0.2.13")
			ask(addr)
		})
	}
}

// TestFunctions_MachineLost: a socket that somebody has removed is lost, and the next change makes it anew. What others have put in its
// place stays.
func TestFunctions_MachineLost(t *testing.T) {
	d := start(t, hosting(t))
	defer stop(t, d)
	red, _, dir := machines(t, d)
	at := filepath.Join(dir, "b")
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	stands(t, d, "blue", "lost")
	change(t, d, "blue", "host=stream:"+at)
	stands(t, d, "blue", "waiting")
	blue := streamVM(t, at, blueMAC).reads()
	blue.gets(t, "by the new socket", "", func() { red.sends(t, red.mac, blue.mac, "by the new socket") })
	if err := os.Rename(at, at+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stands(t, d, "blue", "lost")
	change(t, d, "blue", "host=none")
	if _, err := os.Stat(at); err != nil {
		t.Errorf("another's file: %v", err)
	}
}
