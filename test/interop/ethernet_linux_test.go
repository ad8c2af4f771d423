package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestEthernetFunction: a virtual machine whose card is the host side of an adapter's Ethernet function, by a datagram or a
// stream socket. Its kernel talks to this system's, behind the adapter of another driver, by IPv4 and IPv6, and its rxe to that
// adapter's RDMA function, with the same MAC and addresses.
func TestEthernetFunction(t *testing.T) {
	site(t)
	for _, kind := range []string{config.HostDatagram, config.HostStream} {
		t.Run(kind, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "vm") // t.TempDir may be too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			vm, wire := filepath.Join(dir, "vm"), filepath.Join(dir, "wire")
			// The machine's adapter has the address of its card, and no RDMA: RoCE is the machine's.
			near := drive(t, filepath.Join(dir, "near"), config.Adapter{Name: "near", Link: config.LinkDatagram,
				Address: netip.MustParseAddr("10.99.0.77"), Wire: config.Wire{Datagram: wire, Peer: wire + ".far", MAC: "52:54:00:99:00:02", Prefix: 24},
				HostSide: config.HostSide{Host: kind + ":" + vm}})
			off := "4"
			if _, err := near.Set("near", "roce_mode", &off); err != nil {
				t.Fatal(err)
			}
			if err := near.RestartAdapter("near"); err != nil {
				t.Fatal(err)
			}
			card := fmt.Sprintf("dgram,id=n0,local.type=unix,local.path=%s.peer,remote.type=unix,remote.path=%[1]s", vm)
			if kind == config.HostStream {
				card = fmt.Sprintf("stream,id=n0,server=off,addr.type=unix,addr.path=%s", vm)
			}
			g := bootOn(t, 1500, card)
			far := drive(t, filepath.Join(dir, "far"), config.Adapter{Name: "far", Link: config.LinkDatagram, Address: ours.v4,
				Wire:     config.Wire{Datagram: wire + ".far", Peer: wire, MAC: "02:00:00:00:99:01", Prefix: 24},
				HostSide: config.HostSide{Host: "tap:nic0"}})
			command(t, "ip", "addr", "add", ours.v4.String()+"/24", "dev", "nic0")
			command(t, "ip", "addr", "add", ours.v6.String()+"/64", "dev", "nic0", "nodad")
			for _, f := range families {
				t.Run(f.name, func(t *testing.T) {
					g.bulk(t, f)
				})
			}
			g.driver = far.Config().Socket
			t.Cleanup(func() { g.driver = "" })
			g.pings(t, families[0], framePings)
			for _, d := range []*driver.Driver{near, far} {
				c := d.Status().Adapters[0].Ethernet.Counters
				if c["sent_packets"] == 0 || c["received_packets"] == 0 || c["received_checksum_errors"] != 0 || c["bad_header_frames"] != 0 ||
					c["dropped_host_frames"] > 10 {
					t.Errorf("%v", c)
				}
			}
			g.stop()
			if b, err := os.ReadFile(g.capture); err != nil || len(b) < 1<<20 {
				t.Errorf("the card's capture has %d bytes, %v", len(b), err)
			}
		})
	}
}

// drive starts a driver with one adapter.
func drive(t *testing.T, dir string, a config.Adapter) *driver.Driver {
	t.Helper()
	d, err := driver.Start(t.Context(), config.Config{Socket: dir + ".sock", State: dir, SkipSelfCheck: true, Adapters: []config.Adapter{a}},
		driver.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// bulkBytes are more than any queue or window on the way holds.
const bulkBytes = 6 << 20

// bulk moves bytes by TCP from this system to the guest, which sends them back.
func (g *guest) bulk(t *testing.T, f family) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(f.ours, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := make([]byte, bulkBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	echo := g.program(t, "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d; cat <&3 >&3", f.ours, l.Addr().(*net.TCPAddr).Port))
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(await.Limit))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make(chan error)
	go func() {
		_, err := c.Write(data)
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	got, err := io.ReadAll(c)
	if err := errors.Join(err, <-sent); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes come back, %v", len(got), len(data), err)
	}
	echo.succeeds(t, programLimit)
}
