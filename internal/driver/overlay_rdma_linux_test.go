package driver

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// The customer addresses of both tenants of TestOverlay_RDMA.
var oneCustomer, otherCustomer = netip.MustParseAddr("172.16.0.1"), netip.MustParseAddr("172.16.0.2")

// functionsIn makes a virtual function of each tenant at two ports, with RDMA and without a network interface: their customer addresses
// are the records'. Both tenants have the same, and provider addresses of the one are of IPv4, of the other of IPv6.
func functionsIn(t *testing.T, d *Driver) {
	t.Helper()
	say(t, d, "address adapter=a address=198.18.0.1/24", "address adapter=b address=198.18.0.2/24",
		"address adapter=a address=fd98::1/64", "address adapter=b address=fd98::2/64",
		"record vsid=5001 customer=172.16.0.1 mac=00:15:5d:00:00:01 provider=198.18.0.1",
		"record vsid=5001 customer=172.16.0.2 mac=00:15:5d:00:00:02 provider=198.18.0.2",
		"record vsid=5002 customer=172.16.0.1 mac=00:15:5d:00:00:03 provider=fd98::1",
		"record vsid=5002 customer=172.16.0.2 mac=00:15:5d:00:00:04 provider=fd98::2")
	for _, f := range []string{"a red1 5001 1", "b red2 5001 2", "a blue1 5002 3", "b blue2 5002 4"} {
		w := strings.Fields(f)
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: w[0], Name: w[1],
			Settings: []string{"mac=00:15:5d:00:00:0" + w[3], "vsid=" + w[2]}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOverlay_RDMA: programs of functions in virtual subnets have RDMA with those of their subnet at another port, by the customer
// addresses of the records, which two subnets have alike at once, and reach nobody else. Between the hosts it is RoCE v2 inside VXLAN with
// an ICRC that is right inside, and nothing asks or answers there for customers.
func TestOverlay_RDMA(t *testing.T) {
	systemtest.Mark(t)
	d := tenanted(t)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	functionsIn(t, d)
	id, stream, err := NewAdmin(d.cfg.Socket).StartCapture(t.Context(), CaptureRequest{Adapter: "a", Snap: 2000})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	file, read := []byte(nil), make(chan error, 1)
	go func() { // all the while: a capture that nobody reads keeps its first frames, which may be of one subnet
		var err error
		file, err = io.ReadAll(stream)
		read <- err
	}()
	socket := func(name string) string { return paths.Function(d.cfg.Socket, name) }
	red := talkAs(t, socket("red1"), socket("red2"), oneCustomer, otherCustomer, 7000)
	blue := talkAs(t, socket("blue1"), socket("blue2"), oneCustomer, otherCustomer, 7000)
	for range 3 {
		red.proceeds(t, 3)
		blue.proceeds(t, 3)
	}
	if err := NewAdmin(d.cfg.Socket).StopCapture(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	insideVXLAN(t, file)
	for _, s := range d.Overlay().Switches {
		if s.Counters["sent"] == 0 || s.Counters["arrived"] == 0 {
			t.Errorf("overlay of %s: %+v", s.Adapter, s.Counters)
		}
	}
	overlayMetrics(t, d)
	strangers(t, d, red)
	if _, err := d.RemoveOverlayEntries(api.OverlayRequest{Kind: "record", Settings: []string{"vsid=5001", "customer=172.16.0.2"}}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the function whose record is gone has no GID of it", func() bool {
		return len(d.host.Addresses(d.functions.find("red2").index).Served) == 1
	})
	blue.proceeds(t, 3)
	say(t, d, "record vsid=5001 customer=172.16.0.2 mac=00:15:5d:00:00:02 provider=198.18.0.2")
	red.proceeds(t, 3)
}

// TestOverlay_PathMTU: RDMA of a function in a virtual subnet has packets that fit into their tunnel, from when there is one, which an
// event and its programs are told of, and those of others are not.
func TestOverlay_PathMTU(t *testing.T) {
	cfg := hosting(t)
	for i := range cfg.Adapters {
		cfg.Adapters[i].LinkMTU = 1130 // a payload of 1024 with all headers, 512 with those of VXLAN outside
	}
	d := start(t, cfg)
	defer stop(t, d)
	for name, settings := range map[string][]string{"red": {"vsid=5001"}, "blue": nil} {
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name, Settings: settings}); err != nil {
			t.Fatal(err)
		}
	}
	red, blue := eventsOf(t, d, "red"), eventsOf(t, d, "blue")
	wants := func(what string, of, own uint32) {
		t.Helper()
		for _, f := range d.host.Functions(0) {
			if want := map[string]uint32{"red": of, "blue": own}[f.Config.Name]; f.Info.ActiveMTU != want {
				t.Errorf("%s: the path MTU of %s is %d, want %d", what, f.Config.Name, f.Info.ActiveMTU, want)
			}
		}
		if a := d.host.Overview().Adapters[0]; a.Info.ActiveMTU != own {
			t.Errorf("%s: the path MTU of the physical function is %d, want %d", what, a.Info.ActiveMTU, own)
		}
	}
	wants("without a provider address", 1024, 1024)
	say(t, d, "address adapter=a address=198.18.0.1/24")
	wants("with one", 512, 1024)
	red.has(t, verbs.EventPortActive)
	wantEvent(t, d, "MTUChanged", "a: the MTU of red is 1080 bytes, 1130 before", "connections 512, 1024 before")
	if _, err := d.RemoveOverlayEntries(api.OverlayRequest{Kind: "address"}); err != nil {
		t.Fatal(err)
	}
	wants("without one again", 1024, 1024)
	red.has(t, verbs.EventPortActive)
	wantEvent(t, d, "MTUChanged", "a: the MTU of red is 1130 bytes, 1080 before", "connections 1024, 512 before")
	if err := d.ResetFunction("blue"); err != nil {
		t.Fatal(err)
	}
	blue.has(t, verbs.EventDeviceFatal) // there was none before
}

// functionEvents is a program at a virtual function that waits for events.
type functionEvents struct{ *verbs.Watcher }

func eventsOf(t *testing.T, d *Driver, function string) functionEvents {
	t.Helper()
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	h, err := verbs.Open(t.Context(), verbs.Options{Mode: verbs.Attached, Socket: paths.Function(d.cfg.Socket, function), Name: "told"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	w := h.Watch()
	t.Cleanup(func() { w.Close() })
	return functionEvents{w}
}

// has fails unless the next event is one.
func (w functionEvents) has(t *testing.T, want verbs.EventType) {
	t.Helper()
	e, err := w.Next(t.Context())
	if err != nil || e.Type != want {
		t.Fatalf("the next event is %v, %v, want %v", e.Type, err, want)
	}
}

// overlayMetrics looks for what the overlay of a port has counted among the metrics.
func overlayMetrics(t *testing.T, d *Driver) {
	t.Helper()
	w := httptest.NewRecorder()
	d.counters.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{"functions{adapter=\"a\"} 2", "records{adapter=\"a\"} 4", "addresses{adapter=\"b\"} 2",
		"sent_total{adapter=\"a\"} [1-9]", "sent_bytes_total{adapter=\"a\"} [1-9]", "arrived_total{adapter=\"b\"} [1-9]",
		"arrived_bytes_total{adapter=\"b\"} [1-9]", "dropped_no_record_total{adapter=\"a\"} 0"} {
		if !regexp.MustCompile("\nsoftvpi_overlay_" + want).MatchString(w.Body.String()) {
			t.Errorf("no metric softvpi_overlay_%s", want)
		}
	}
}

// TestOverlay_Reasons: each reason for which an overlay drops frames has its counter.
func TestOverlay_Reasons(t *testing.T) {
	set, _ := catalogue.CounterSetNamed("overlay")
	for r := overlay.Reason(1); r.String() != "unknown"; r++ {
		if !slices.ContainsFunc(set.Counters, func(c catalogue.Counter) bool { return c.Short == "dropped_"+r.String() }) {
			t.Errorf("the counter set has no %v", r)
		}
	}
}

// strangers: a function of a third subnet with a record of the same address reaches neither tenant.
func strangers(t *testing.T, d *Driver, red *talker) {
	t.Helper()
	say(t, d, "record vsid=5003 customer=172.16.0.1 mac=00:15:5d:00:00:05 provider=198.18.0.1",
		"record vsid=5003 customer=172.16.0.2 mac=00:15:5d:00:00:02 provider=198.18.0.2")
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "green",
		Settings: []string{"mac=00:15:5d:00:00:05", "vsid=5003"}}); err != nil {
		t.Fatal(err)
	}
	err := red.adapter(t.Context(), paths.Function(d.cfg.Socket, "green"), oneCustomer, func(a *nd.Adapter) error {
		some, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		c, err := (&rdmanet.Dialer{Adapter: a}).Dial(some, netip.AddrPortFrom(otherCustomer, 7000).String())
		if err == nil {
			c.Close()
		}
		return err
	})
	if err == nil {
		t.Error("a function of another subnet is connected")
	}
}

// insideVXLAN looks at what was on the wire of the providers: RoCE v2 of both subnets inside VXLAN, and nothing of customers outside.
func insideVXLAN(t *testing.T, file []byte) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	n := map[uint32]int{}
	for b, _, err := r.ReadPacketData(); err == nil; b, _, err = r.ReadPacketData() {
		var h eth.Headers
		var f tunnel.Frame
		if !h.Parse(b) {
			t.Fatalf("% x", b)
		}
		if !f.Find(&h, b, tunnel.Recognition{VXLANPort: tunnel.Port}) {
			if bytes.Contains(b, oneCustomer.AsSlice()) || bytes.Contains(b, []byte{0x00, 0x15, 0x5d, 0, 0}) {
				t.Errorf("customers are seen outside: % x", b)
			}
			continue
		}
		ip := b[f.At+eth.EthernetLen:]
		udp := ip[eth.IPv4Len:]
		if f.Inner.Version != 4 || eth.UDP(udp).DstPort() != eth.PortRoCEv2 {
			t.Fatalf("inside a tunnel: % x", b)
		}
		data := udp[eth.UDPLen:eth.UDP(udp).Length()]
		var scratch ib.ICRCScratch
		crc := ib.ICRCSeedIPv4(&scratch, ip[:eth.IPv4Len], udp[:eth.UDPLen], data[:ib.BTHLen])
		if end := len(data) - ib.ICRCLen; ib.ICRCUpdate(crc, data[ib.BTHLen:end]) != ib.ICRC(data[end:]) {
			t.Errorf("the ICRC inside is wrong: % x", b)
		}
		n[f.ID]++
	}
	if n[5001] < 20 || n[5002] < 20 || len(n) != 2 {
		t.Errorf("frames in tunnels, by subnet: %v", n)
	}
}
