package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestEthernet_VXLAN: Linux's own VXLAN, with a checksum outside and without, passes between hosts at adapters. RSS monitoring tells TCP
// inside from the datagrams that carry it as long as *EncapsulatedPacketTaskOffloadVxlan is 1; without it all still passes.
func TestEthernet_VXLAN(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	h := linuxHosts(t, 1500)
	a, b := h[0], h[1]
	if out, err := exec.Command("ip", "-n", a.ns, "link", "add", "vx", "type", "vxlan", "id", "7", "dstport", "0").CombinedOutput(); err != nil {
		t.Skipf("needs the kernel's VXLAN: %s", out)
	}
	a.shell(t, "ip link del vx")
	for _, x := range h {
		x.driver = x.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,interface=wire,generation=mlx4,mac=%s,host=tap:nic", x.ip, x.mac))
		x.driver.until(t, "listening")
		x.address(t)
	}
	command := func(args ...string) string {
		t.Helper()
		status, out, errs := b.run(t, args...)
		if status != 0 {
			t.Fatal(args, out, errs)
		}
		return out
	}
	for _, key := range []string{"RssMonitoringEnabled", "RssCountersActivatedAtStartup"} {
		command("reg", "add", key, "--adapter", "port", "/d", "1", "/f")
	}
	command("adapter", "restart", "port")
	inside := func() (n uint64) {
		t.Helper()
		for line := range strings.Lines(command("counters", "get", "adapter_rss(port, *)")) {
			if rest, is := strings.CutPrefix(strings.TrimSpace(line), "Encapsulated Rss IPv4/Tcp "); is {
				v, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
				if err != nil {
					t.Fatal(line, err)
				}
				n += v
			}
		}
		return n
	}
	b.begin(t, "iperf3", "-s")
	for _, sum := range []string{"udpcsum", "noudpcsum"} {
		for i, x := range h {
			x.shell(t, fmt.Sprintf("ip link add vx type vxlan id 7 dstport 4789 %s local %s remote %s dev nic; ip addr add 10.7.0.%d/24 dev vx; "+
				"ip link set vx up", sum, x.ip, h[1-i].ip, i+1))
		}
		a.shell(t, "ping -c 2 -i 0.2 10.7.0.2")
		for _, key := range []string{"1", "0"} {
			command("reg", "add", "*EncapsulatedPacketTaskOffloadVxlan", "--adapter", "port", "/d", key, "/f")
			before := inside()
			a.shell(t, "iperf3 -n 1M -c 10.7.0.2")
			if n := inside() - before; (n != 0) != (key == "1") {
				t.Errorf("%s, offload %s: %d packets with TCP inside", sum, key, n)
			}
		}
		for _, x := range h {
			x.shell(t, "ip link del vx")
		}
	}
	if c := b.status(t).Adapters[0].Ethernet.Counters; c["received_checksum_errors"] != 0 || c["bad_header_frames"] != 0 {
		t.Errorf("%v", c)
	}
}
