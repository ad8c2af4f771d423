package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

var accepted = regexp.MustCompile(`RDMA Accepted Connections +[1-9]\d* connections\n`)

// Other processes can read a driver's counters and events; the death of a program is an event.
func TestCountersAndEvents(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	p.up(t)
	follow := p.spawn(t, "events", "follow", "-n", "100", "-json")
	follow.until(t, `"symbol":"DriverStarted"`)

	p.pair(t, "#qp", []string{"nd_send_bw", "-S", p.first}, []string{"nd_send_bw", "-C", p.first, "-n", "10"})
	status, out, errs := p.run(t, "counters", "get", "rdma_activity(Ethernet 1).accepted_connections",
		"adapter_traffic(* 1).received_symbol_error_packets")
	if status != 0 || !strings.Contains(out, "RDMA Activity (Ethernet 1)\n") || !accepted.MatchString(out) ||
		!strings.Contains(out, " - packets\n") {
		t.Errorf("%d %s%s", status, out, errs)
	}
	status, out, errs = p.run(t, "counters", "watch", "-si", "0.05", "-sc", "2", `\RDMA Activity(*)\*/sec`)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); status != 0 || len(lines) != 3 ||
		!strings.HasPrefix(lines[0], `"(PDH-CSV 4.0)","\\`) {
		t.Errorf("%d %s%s", status, out, errs)
	}
	if status, _, errs = p.run(t, "counters", "get", "nonsense"); status != 2 || !strings.Contains(errs, "no such counter set") {
		t.Errorf("%d %s", status, errs)
	}

	server := p.spawn(t, "nd_rping", "-s", "-a", p.first)
	for len(p.status(t).Programs) == 0 { // until it is attached
	}
	server.cmd.Process.Kill()
	if line := follow.until(t, `"symbol":"ProgramDied"`); !strings.Contains(line, `"source":"softvpi","id":12,"severity":"Warning"`) {
		t.Error(line)
	}
	status, out, errs = p.run(t, "events", "list", "-severity", "warning,error")
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool {
		return strings.Contains(line, "flow control is off") // by default, for each adapter
	})
	if status != 0 || len(lines) != 1 || !strings.Contains(lines[0], "ended without detaching") {
		t.Errorf("%d %s%s", status, out, errs) // the client has detached, and is not in the list
	}
}

func TestReportsWithoutADriver(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, verb := range []string{"counters get", "events list"} {
		if status, _, errs := p.run(t, strings.Fields(verb)...); status != 1 || !strings.Contains(errs, "no driver is running") {
			t.Errorf("%s: %d %s", verb, status, errs)
		}
	}
}
