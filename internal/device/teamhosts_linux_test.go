package device

import (
	"encoding/binary"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// machine is the host of a virtual function's Ethernet function, by a pair of sockets: it sends frames and gets some.
type machine struct {
	conn *net.UnixConn
	end  hostside.End
	to   *net.UnixAddr
	mac  eth.MAC
	addr netip.Addr
	sent uint32
}

// newMachine opens the sockets of a machine. change gives a virtual function the other end.
func newMachine(t testing.TB, dir, name string) (m *machine, change func(*FunctionConfig)) {
	t.Helper()
	function, own := filepath.Join(dir, name), filepath.Join(dir, name+"m")
	end, err := hostside.OpenDatagram(function, own)
	if err != nil {
		t.Fatal(err)
	}
	m = &machine{end: end, to: &net.UnixAddr{Name: function, Net: "unixgram"}}
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close() })
	return m, func(f *FunctionConfig) {
		m.mac, m.addr = f.MAC, f.Addr.Addr()
		f.Ethernet = &EthernetConfig{Host: end, Config: ethernet.Defaults(catalogue.MLX5)}
	}
}

// say sends a frame to another machine, as often as it takes, as what sends TCP again does, and sees it arrive there as it was.
func (m *machine) say(t testing.TB, to *machine) {
	t.Helper()
	m.sent++
	const port, size, payload = 7, 1000, eth.EthernetLen + eth.IPv4Len + eth.UDPLen
	d := eth.Datagram{Src: m.addr, Dst: to.addr, SrcPort: port, DstPort: port, HopLimit: 64}
	h := eth.Ethernet{Dst: to.mac, Src: m.mac, Type: d.Type()}
	b := make([]byte, payload+size)
	h.Put(b)
	d.Put(b[eth.EthernetLen:], size)
	for i := payload; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], m.sent)
	}
	got := make([]byte, 2000)
	await.Eventually(t, "a frame of one machine at another", func() bool {
		if _, err := m.conn.WriteToUnix(b, m.to); err != nil {
			t.Fatal(err)
		}
		for {
			_ = to.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			n, err := to.conn.Read(got)
			if err != nil {
				return false
			}
			if n == len(b) && string(got[payload:n]) == string(b[payload:]) {
				if dst := eth.MAC(got); dst != to.mac {
					t.Errorf("it arrives at %v, want %v", dst, to.mac)
				}
				return true
			}
		}
	})
}
