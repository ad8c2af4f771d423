package tunnel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestAppend_Wireshark: Wireshark finds the golden frames' headers, checksums and the frame inside.
func TestAppend_Wireshark(t *testing.T) {
	systemtest.Mark(t)
	shark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("there is no tshark: test/ethernet/packages.sh installs it")
	}
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden {
		o := outer(c.v6, c.sum)
		b := o.Append(nil, c.h, arp())
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(b), Length: len(b)}, b); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "tunnels.pcap")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(shark, "-n", "-r", name, "-o", "udp.check_checksum:TRUE", "-T", "fields", "-e", "frame.protocols", "-e", "vxlan.vni",
		"-e", "gre.key", "-e", "udp.checksum.status", "-e", "udp.srcport").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
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
