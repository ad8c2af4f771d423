package interop

import (
	"fmt"
	"os/exec"
	"testing"
)

// TestSoftRoCE runs everything on a segment of each MTU, and then checks the
// capture of all that crossed it.
func TestSoftRoCE(t *testing.T) {
	site(t)
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprintf("mtu%d", mtu), func(t *testing.T) {
			g := boot(t, mtu)
			t.Run("rping", func(t *testing.T) { testRping(t, g) })
			g.stop()
			t.Run("capture", func(t *testing.T) { testCapture(t, g) })
		})
	}
}

// testCapture checks every packet of either side with two programs that are not
// ours: icrc.py computes the ICRC from its definition and measures the frames, and
// tshark decodes them.
func testCapture(t *testing.T, g *guest) {
	out, err := exec.Command("python3", "icrc.py", fmt.Sprint(g.mtu), g.capture).CombinedOutput()
	t.Logf("icrc.py: %s", tail(string(out)))
	if err != nil {
		t.Errorf("icrc.py: %v", err)
	}
	cmd := exec.Command("tshark", "-n", "-r", g.capture,
		"-Y", "udp.port == 4791 && (_ws.malformed || _ws.short || _ws.unreassembled)")
	malformed, err := cmd.Output()
	if err != nil {
		t.Errorf("tshark: %v", err)
	}
	if len(malformed) > 0 {
		t.Errorf("tshark cannot decode:\n%s", tail(string(malformed)))
	}
}
