package lacp

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

// Wireshark says of each data unit that is written what was meant.
func TestFrame_Wireshark(t *testing.T) {
	systemtest.Mark(t)
	shark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("there is no tshark: test/ethernet/packages.sh installs it")
	}
	u := PDU{Actor: Participant{0x8000, macA, 17, 0x80, 3, Activity | Timeout | Aggregation | Synchronization},
		Partner: Participant{0xffff, macA, 15, 0xff, 2, Aggregation | Collecting | Distributing}, MaxDelay: 5}
	m := Marker{Port: 3, System: macA, Transaction: 0x01020304}
	answer := m
	answer.Response = true
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{u.Frame(macA), m.Frame(macA), answer.Frame(macA)} {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(b), Length: len(b)}, b); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "units.pcap")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(shark, "-n", "-r", name, "-T", "fields", "-e", "lacp.actor.key", "-e", "lacp.actor.port", "-e", "lacp.actor.state",
		"-e", "lacp.partner.key", "-e", "lacp.partner.state", "-e", "marker.tlvType", "-e", "marker.requesterPort",
		"-e", "marker.requesterTransId", "-e", "_ws.malformed", "-E", "separator=;").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := []string{"17;3;0x0f;15;0x34;;;;", ";;;;;0x01,0x00;3;16909060;", ";;;;;0x02,0x00;3;16909060;"} // 0x00: the terminator
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	for i, line := range lines {
		if line != want[i] {
			t.Errorf("frame %d: tshark reads %s, want %s", i, line, want[i])
		}
	}
}
