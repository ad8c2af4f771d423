package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestDCBX_Applications: the priority that the other end of a wire has for RoCE acts on a connection that exists, as soon as it is agreed,
// in both directions, and ends when the other end takes it back. The connection goes on meanwhile.
func TestDCBX_Applications(t *testing.T) {
	systemtest.Mark(t)
	h := linuxHosts(t, 1500)
	x, y := h[0].speak(t, "interface=wire"), h[1].speak(t, "interface=wire")
	y.do(t, "qos set x willing=off")
	running := congested{h[0]}.transfer(t, congested{h[1]}, "-D", "600")
	for _, step := range []struct {
		app      string
		priority int // of the connection's packets; -1: they are untagged
	}{{"default", -1}, {"port:4791=5", 5}, {"port:4791=3", 3}, {"default", -1}} {
		y.do(t, "qos set x app="+step.app)
		for _, s := range []speaker{x, y} {
			await.Eventually(t, fmt.Sprintf("%s's packets at priority %d alone", s.ip, step.priority), func() bool {
				before := s.sent(t)
				here := 0
				for p, n := range s.sent(t) {
					if n -= before[p]; p == step.priority+1 {
						here = n
					} else if n > 0 {
						return false
					}
				}
				return here > 0
			})
		}
	}
	running.stop(t)
}

// sent returns how many packets have left without a priority, and at each of the eight.
func (x speaker) sent(t *testing.T) (n [9]int) {
	t.Helper()
	code, out, errs := x.run(t, "counters", "get", "adapter_qos(x, *).sent_packets")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	at := -1
	for line := range strings.SplitSeq(out, "\n") {
		var p int
		switch _, instance, _ := strings.Cut(line, "(x, "); {
		case strings.HasPrefix(instance, "Untagged"):
			at = 0
		case instance != "":
			if _, err := fmt.Sscanf(instance, "Priority %d)", &p); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			at = p + 1
		default:
			if f := strings.Fields(line); len(f) == 4 && at >= 0 {
				n[at], _ = strconv.Atoi(f[2])
			}
		}
	}
	return n
}
