package web

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/wire/eth"
)

// socketAt listens on a unix datagram socket until the test ends.
func socketAt(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	s, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestEthernetPages: the pages of an adapter follow its Ethernet function: frames of both directions while they pass, keys that change
// what passes, and a wire that goes down and comes back.
func TestEthernetPages(t *testing.T) {
	path := chromium(t)
	dir, err := os.MkdirTemp("", "vpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	frames, guest := filepath.Join(dir, "wire"), filepath.Join(dir, "guest")
	wire, host := socketAt(t, frames+".peer"), socketAt(t, guest+".peer")
	cfg := driverbed.Config(t, config.Adapter{Name: "nic", Link: config.LinkDatagram, Address: netip.MustParseAddr("192.0.2.1"),
		HostSide: config.HostSide{Host: "datagram:" + guest}, Wire: config.Wire{Datagram: frames, Peer: frames + ".peer", Prefix: 24, MAC: "02:00:00:00:00:01"}})
	driverbed.Start(t, cfg)
	send := func(from *net.UnixConn, to string, n, length int) {
		t.Helper()
		h := eth.Ethernet{Dst: eth.MAC{2, 5: 1}, Src: eth.MAC{2, 5: 2}, Type: 0x88b5}
		if from == host {
			h.Dst, h.Src = h.Src, h.Dst
		}
		f := append(h.Append(nil), make([]byte, length-eth.EthernetLen)...)
		for range n {
			if _, err := from.WriteToUnix(f, &net.UnixAddr{Name: to, Net: "unixgram"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	link, err := api.NewClient(cfg.Socket).Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, path)
	b.follow(link.URL)
	b.shows("h1", "Devices of")
	b.adapter("nic", "")
	says := func(name, text string) {
		t.Helper()
		b.holds(fmt.Sprintf(`[...document.querySelectorAll("#information dt")].some((e) => e.textContent === %q && `+
			`e.nextElementSibling.textContent.includes(%q))`, name, text))
	}
	says("Wire", "datagram socket")
	says("Passes", "directed, all multicast, broadcast; untagged; up to 1514 bytes")
	send(wire, frames, 3, 100)
	says("Frames received", "3 frames, 300 bytes") // the page updates itself
	send(host, guest, 2, 1000)
	says("Frames sent", "2 frames, 2\u202f000 bytes")

	b.adapter("nic", "/advanced")
	const key = `[id="key-*PriorityVLANTag"]`
	b.choose(key+" [name=value]", "0: priority & VLAN disabled")
	b.click(key + " button.primary")
	b.shows(".notice", "*PriorityVLANTag is 0 now.")
	b.adapter("nic", "")
	tagged := []byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x81\x00\xa0\x00\x88\xb5")
	if _, err := wire.WriteToUnix(append(tagged, make([]byte, 60)...), &net.UnixAddr{Name: frames, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	says("Not for the host", "1 frames, 0 too long")
	client := api.NewClient(cfg.Socket)
	if _, err := client.Set(t.Context(), "nic", "VlanID", "7"); err != nil {
		t.Fatal(err)
	}
	says("Passes", "VLAN 7 alone")
	send(wire, frames, 2, 100)
	says("Not for the host", "3 frames, 0 too long")

	b.page("counters")
	b.choose("#set", "Network Interface")
	b.choose("#counter", "Bytes Sent")
	b.click("#add")
	b.holds(`[...document.querySelectorAll("#chosen tr")].some((r) => r.cells[3].textContent === "Bytes Sent" && ` +
		`r.cells[4].textContent === "2" && r.cells[5].textContent === "KB" && r.cells[4].title === "2,000 bytes")`)
	b.choose("#counter", "Current Bandwidth")
	b.click("#add")
	b.holds(`[...document.querySelectorAll("#chosen tr")].some((r) => r.cells[4].textContent === "10" && r.cells[5].textContent === "Gbit/s")`)
	b.holds(`[...document.querySelectorAll("#chart text")].some((e) => e.textContent === "Gbit/s")`)

	b.adapter("nic", "")
	says("Link speed", "10 Gbit/s")
	wire.Close()
	if err := os.Remove(frames + ".peer"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	send(host, guest, 1, 100) // the driver finds nobody there
	says("State", "down")
	says("Link speed", "0 Gbit/s")
	socketAt(t, frames+".peer")
	says("State", "up")
	says("Link speed", "10 Gbit/s")
	for _, fault := range b.faults() {
		t.Error(fault)
	}
}
