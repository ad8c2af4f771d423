package tunnel

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/testbed/tshark"
)

// TestAppend_Wireshark: Wireshark finds the golden frames' headers, checksums and the frame inside.
func TestAppend_Wireshark(t *testing.T) {
	systemtest.Mark(t)
	var written [][]byte
	for _, c := range golden {
		o := outer(c.v6, c.sum)
		written = append(written, o.Append(nil, c.h, arp()))
	}
	out := tshark.Reads(t, written, "-o", "udp.check_checksum:TRUE", "-T", "fields", "-e", "frame.protocols", "-e", "vxlan.vni",
		"-e", "gre.key", "-e", "udp.checksum.status", "-e", "udp.srcport")
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) != len(golden) {
		t.Fatalf("%d frames, want %d:\n%s", len(lines), len(golden), out)
	}
	for i, want := range []string{
		"eth:ethertype:ip:gre:eth:ethertype:arp\t\t0x1234565a\t\t",
		"eth:ethertype:ip:udp:vxlan:eth:ethertype:arp\t4660\t\t3\t49152", // not present
		"eth:ethertype:ip:udp:vxlan:eth:ethertype:arp\t4660\t\t1\t49152", // good
		"eth:ethertype:ipv6:udp:vxlan:eth:ethertype:arp\t16777215\t\t",   // of status 0: IPv6 should have one
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("%s: tshark says\n%q, want\n%q", golden[i].name, lines[i], want)
		}
	}
}
