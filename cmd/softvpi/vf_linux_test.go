package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// hosting starts a driver with the adapters pf and other at a switch of its own.
func (p place) hosting(t *testing.T) *process {
	t.Helper()
	d := p.spawn(t, "up", "--skip-self-check", "--adapter", "pf=192.0.2.1/24,switch=s", "--adapter", "other=192.0.2.2/24,switch=s")
	d.until(t, "listening")
	return d
}

// TestVFMonitoring: a program of one virtual function that gives many commands which are refused is in the event log with the function's
// number, in the manual's words; mlx5cmd says that the feature is on, and its dump has errors of that function alone, from the adapter that
// has functions (WinOF-2 24.4, VF Monitoring).
func TestVFMonitoring(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	p.hosting(t)
	for _, name := range []string{"red", "blue"} {
		p.ok(t, "vf", "create", "pf", name)
	}
	if out := p.ok(t, "mlx5cmd", "-Features", "-Name", "pf"); !strings.Contains(out, "VfCpuMonEnable is 0") {
		t.Errorf("the features at first: %s", out)
	}
	for key, value := range map[string]string{"VfCpuMonEnable": "1", "VfCpuMonBatchPeriodSec": "1", "VfCpuMonErrors2FwMax": "1"} {
		p.ok(t, "reg", "add", key, "--adapter", "pf", "/d", value, "/f")
	}
	out := p.ok(t, "mlx5cmd", "-Features", "-Name", "pf")
	if !regexp.MustCompile(`Feature VF monitoring of adapter "pf":\n\tState: Enabled\n`).MatchString(out) {
		t.Errorf("the features: %s", out)
	}
	c, err := client.Dial(t.Context(), paths.Function(filepath.Join(p.dir, "d.sock"), "blue"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	warning := regexp.MustCompile(`pf: VF 1 used too many resources over the last [1-9]\d* seconds: FwCpuUsage \d+%, Errors2Fw [1-9]\d*`)
	await.Eventually(t, "a warning", func() bool {
		for range 100 {
			if _, err := c.AllocPD(t.Context(), 7); err == nil {
				t.Error("a domain of an adapter that there is not")
			}
		}
		out = p.ok(t, "events", "list")
		return warning.MatchString(out)
	})
	if strings.Contains(out, "VF 0 used") {
		t.Errorf("the other function is warned of: %s", out)
	}
	out = p.ok(t, "mlx5cmd", "-dbg", "-ResourceDump", "-Dump", "-Segment", "0x5000", "-Index1", "1", "-NumOfObj1", "2",
		"-Index2", "2", "–Depth", "1") // as the manual has it, with its dash
	file := regexp.MustCompile(`/\S+resource_0\.log`).FindString(out)
	b, err := os.ReadFile(file)
	if err != nil || !regexp.MustCompile(`VF 0 Errors2FW: 0\n\tVF 1 Errors2FW: [1-9]\d*\n`).Match(b) {
		t.Errorf("the dump that %q names: %v\n%s", out, err, b)
	}
}
