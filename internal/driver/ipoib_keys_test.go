package driver

import (
	"net"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/tun"
)

// TestIPoIBKeys: the keys of IPoIB take effect for InfiniBand ports at the next start of their adapter; Ethernet
// ports have none.
func TestIPoIBKeys(t *testing.T) {
	cfg := twoCables(t)
	d := start(t, cfg)
	defer stop(t, d)
	if c := d.ipoib.config(0); c.MTU != 4092 || c.SATimeout != time.Second || c.SARetries != 10 || c.QueryPaths ||
		c.GeneralQueryRuns != 3 || c.QueryResponseRuns != 2 || c.LocalMaxAge != 5 || c.LocalInterval != time.Minute ||
		c.MaxGroups != 128 || c.Buffers != (service.Buffers{Send: 2048, Receive: 512}) || c.Unchecked4 || c.Unchecked6 {
		t.Errorf("the defaults are %+v", c)
	}
	if o := d.ipoib.offloads(0); o != (tun.Offloads{Checksum: true, Large4: true, Large6: true, LargeSize: 64000}) {
		t.Errorf("the offloads by default are %+v", o)
	}
	for key, value := range map[string]string{
		"*JumboPacket": "2000", "SaTimeout": "500", "SaRetries": "4", "EnableQPR": "1", "McastIgmpMldGeneralQueryInterval": "7",
		"McastQueryResponseInterval": "6",
		"LocalEndpointMaxAge":        "8", "LocalEndpointMonitorInterval": "20000", "MaxNumOfMCList": "64", "*TransmitBuffers": "256",
		"*ReceiveBuffers":            "4096",
		"*TCPUDPChecksumOffloadIPv4": "1", "*TCPUDPChecksumOffloadIPv6": "3", "*LsoV2IPv6": "0", "LSOSize": "40000", "GUIDMask": "0x3F",
	} {
		if _, err := d.Set("left", key, &value); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	if c := d.ipoib.config(0); c.MTU != 2000 || c.SATimeout != 500*time.Millisecond || c.SARetries != 4 || !c.QueryPaths ||
		c.GeneralQueryRuns != 7 || c.QueryResponseRuns != 6 || c.LocalMaxAge != 8 || c.LocalInterval != 20*time.Second ||
		c.MaxGroups != 64 || c.Buffers != (service.Buffers{Send: 256, Receive: 4096}) || !c.Unchecked4 || c.Unchecked6 {
		t.Errorf("after a restart with keys set the configuration is %+v", c)
	}
	if o := d.ipoib.offloads(0); o != (tun.Offloads{Checksum: true, Large4: true, LargeSize: 40000}) {
		t.Errorf("after a restart with keys set the offloads are %+v", o)
	}
	s := d.Overview().Adapters[0]
	guid := s.InfiniBand.PortGUID
	if want := ipoib.MAC(guid, 0x3f); s.MAC != net.HardwareAddr(want[:]).String() || s.IPoIB[0].MAC != s.MAC {
		t.Errorf("MAC address %s of the GUID %016x with a mask of 3f", s.MAC, guid)
	}
	for _, c := range []struct {
		key, value string
		want       tun.Offloads
	}{
		{"LSOSize", "3000", tun.Offloads{Checksum: true, LargeSize: 3000}}, // below the MTU of 2000 plus 1024
		{"LSOSize", "3024", tun.Offloads{Checksum: true, Large4: true, LargeSize: 3024}},
		{"*LsoV2IPv4", "0", tun.Offloads{Checksum: true, Large4: true, LargeSize: 3024}},
		{"*LsoV1IPv4", "0", tun.Offloads{Checksum: true, LargeSize: 3024}},
		{"*TCPUDPChecksumOffloadIPv4", "2", tun.Offloads{LargeSize: 3024}},
	} {
		if _, err := d.Set("left", c.key, &c.value); err != nil {
			t.Fatal(err)
		}
		if err := d.RestartAdapter("left"); err != nil {
			t.Fatal(err)
		}
		if o := d.ipoib.offloads(0); o != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.key, c.value, o, c.want)
		}
	}
	await.Eventually(t, "the interface runs with its MTU", func() bool {
		d.ipoib.mu.Lock()
		defer d.ipoib.mu.Unlock()
		x := d.ipoib.ports[0]
		return x != nil && x.list["left"].Status().MTU == 2000
	})
	if _, err := d.Set("left", "SaTimeout", new(string)); err == nil {
		t.Error("an empty time-out was accepted")
	}
}
