package interop

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSoftRoCE runs everything on a segment of each MTU, and then checks the capture of all frames.
func TestSoftRoCE(t *testing.T) {
	site(t)
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprintf("mtu%d", mtu), func(t *testing.T) {
			initrd := withoutFio
			if mtu == 1500 { // fio knows IPv4 only, and that is where it runs
				initrd = withFio
			}
			g := boot(t, mtu, initrd)
			if mtu == 1500 { // first, while the capture is short: tshark reads it several times
				t.Run("classes", func(t *testing.T) { testClasses(t, g) })
				t.Run("congestion", func(t *testing.T) { testCongestion(t, g) })
			}
			t.Run("rping", func(t *testing.T) { testRping(t, g) })
			t.Run("verbs", func(t *testing.T) { testVerbs(t, g) })
			t.Run("connections", func(t *testing.T) { testConnections(t, g) })
			t.Run("programs", func(t *testing.T) { testPrograms(t, g) })
			t.Run("distribution", func(t *testing.T) { testDistribution(t, g) })
			t.Run("plain", func(t *testing.T) { testPlain(t, g) })
			t.Run("negative", func(t *testing.T) { testNegative(t, g) })
			t.Run("multicast", func(t *testing.T) { testMulticast(t, g) })
			t.Run("loss", func(t *testing.T) { testLoss(t, g) })
			t.Run("whole frames", func(t *testing.T) { testWholeFrames(t, g) }) // last, as the guest's device gets further addresses
			if mtu == 1500 {
				t.Run("peer vanishes", func(t *testing.T) { testPeerVanishes(t, g) })
				t.Run("we vanish", func(t *testing.T) { testWeVanish(t, g) })
			}
			g.stop()
			t.Run("capture", func(t *testing.T) { g.checkCapture(t, fmt.Sprintf("mtu%d", mtu)) })
		})
	}
}

// checkCapture checks every packet that either side sent before the guest ended, with two programs that are not ours:
// icrc.py computes the ICRC from its definition and measures the frames, and tshark decodes them. The capture may be
// kept under the name.
func (g *guest) checkCapture(t *testing.T, name string) {
	t.Helper()
	if err := trim(g.capture); err != nil {
		t.Fatal(err)
	}
	decoded := make(chan undecoded, 1) // the two programs read it at the same time
	go func() { decoded <- decode(g.capture) }()
	out, err := exec.Command("python3", "icrc.py", fmt.Sprint(g.mtu), g.capture).CombinedOutput()
	t.Logf("icrc.py: %s", tail(string(out)))
	if err != nil {
		t.Errorf("icrc.py: %v", err)
	}
	tshark := <-decoded
	if tshark.err != nil {
		t.Errorf("tshark: %v\n%s", tshark.err, tail(tshark.said))
	}
	if tshark.packets != "" {
		t.Errorf("tshark cannot decode:\n%s", tail(tshark.packets))
	}
	sent := func(a netip.Addr) bool { return strings.Contains(string(out), a.String()+"=") }
	if !slices.ContainsFunc(append([]netip.Addr{ours.v4, ours.v6}, g.stationsOfOurs...), sent) {
		t.Error("the capture has no packet of ours")
	}
	if dir := os.Getenv("SOFTVPI_INTEROP_KEEP"); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatalf("SOFTVPI_INTEROP_KEEP: %v", err)
		}
		command(t, "cp", g.capture, filepath.Join(dir, name+".pcap"))
	}
}

// undecoded is what tshark could not decode of a capture.
type undecoded struct {
	packets string // a line each
	said    string
	err     error
}

// decode has tshark decode the packets of a capture.
func decode(capture string) undecoded {
	args := []string{"-n", "-r", capture, "-Y", "udp.dstport == 4791 && (!infiniband.bth || _ws.malformed || _ws.short)"}
	// tshark guesses what a SEND contains, and would call our patterns malformed. The guess at an Ethernet frame needs
	// no more than an EtherType and two zeros, which random bytes are now and then.
	args = append(args, "--disable-heuristic", "eth_over_ib")
	for _, p := range []string{"rpcordma", "smb_direct", "nvme-rdma", "lnet", "iser", "smc", "infiniband_sdp", "infiniband.eoib", "fcoib"} {
		args = append(args, "--disable-protocol", p)
	}
	var said bytes.Buffer
	tshark := exec.Command("tshark", args...)
	tshark.Stderr = &said
	packets, err := tshark.Output()
	return undecoded{string(packets), said.String(), err}
}
