// Package tshark has Wireshark say what it reads in frames that a test has made.
package tshark

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Reads returns what tshark prints of Ethernet frames, with options. Without tshark the test is skipped.
func Reads(t testing.TB, frames [][]byte, options ...string) string {
	t.Helper()
	systemtest.Required(t)
	systemtest.Programs(t, "tshark")
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, b := range frames {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(b), Length: len(b)}, b); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", append([]string{"-n", "-r", name}, options...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
