package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

func TestKilledClientLeavesNothingBehind(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	s := p.spawn(t, "nd_write_bw", "-S", p.first)
	s.until(t, "#qp")
	c := p.spawn(t, "nd_write_bw", "-C", p.first, "-D", "60")
	await.Eventually(t, "the programs are connected", func() bool {
		st := p.status(t)
		return len(st.Adapters[0].QPs) == 2 && len(st.Programs) == 2
	})
	c.cmd.Process.Kill()
	if code, _, errs := s.wait(t); code != 1 || !strings.Contains(errs, "nd_write_bw: ") {
		t.Errorf("server: status %d, %q", code, errs)
	}
	var st driver.Status
	if !await.Until(func() bool {
		st = p.status(t)
		return len(st.Programs) == 0 && len(st.Adapters[0].QPs)+len(st.Adapters[1].QPs) == 0 && st.Adapters[1].Objects["mr"] == 0
	}) {
		t.Errorf("left behind: %+v %v", st.Programs, st.Adapters[1].Objects)
	}
}

func TestCrashedDriverIsClearedUp(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	d := p.up(t, "--skip-self-check")
	d.cmd.Process.Kill()
	d.wait(t)
	again := p.spawn(t, "up", "--adapter", "Ethernet 1="+p.first)
	again.until(t, "did not stop cleanly")
	again.until(t, "listening")
	again.cmd.Process.Signal(os.Interrupt)
	if code, out, errs := again.wait(t); code != 0 {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
}

func TestAddressInUseNamesItsOwner(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	d := p.up(t, "--skip-self-check")
	other := newPlace(t)
	code, _, errs := other.run(t, "up", "--adapter", "a="+p.first)
	if code != 1 || !strings.Contains(errs, p.first) || !strings.Contains(errs, fmt.Sprint("process ", d.cmd.Process.Pid)) {
		t.Errorf("status %d, %q; want process %d", code, errs, d.cmd.Process.Pid)
	}
}

func TestDisabledAdapterIsReportedAndOthersServe(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	if code, _, errs := p.run(t, "adapter", "disable", "Ethernet 2"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := p.run(t, "nd_send_bw", "-C", p.first, "-L", p.second); code != 1 || !strings.Contains(errs, "ND_DEVICE_REMOVED") {
		t.Errorf("from the disabled adapter: status %d, %q; want ND_DEVICE_REMOVED", code, errs)
	}
	p.pair(t, "#qp", []string{"nd_send_bw", "-S", p.first}, []string{"nd_send_bw", "-C", p.first, "-n", "10"})
	if code, _, errs := p.run(t, "adapter", "enable", "Ethernet 2"); code != 0 {
		t.Fatal(errs)
	}
	p.pair(t, "#qp", []string{"nd_send_bw", "-S", p.first}, []string{"nd_send_bw", "-C", p.first, "-L", p.second, "-n", "10"})
}
