package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestTeam_Veth: pings whose data is checked go on over a team of two interfaces while one after the other loses its link and gets it
// back, at a bridge of Linux that knows nothing of it. How long they stood still is printed.
func TestTeam_Veth(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	h := linuxHosts(t, 1500)
	a, b := h[0], h[1]
	a.twoMembers(t)
	a.driver = a.spawn(t, "up", "--adapter", "port="+a.ip+"/24,team=AFT,members=interface:m0:primary+interface:m1")
	b.driver = b.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,interface=wire,mac=%s", b.ip, b.mac))
	a.driver.until(t, "listening")
	b.driver.until(t, "listening")
	server := b.spawn(t, "nd_rping", "-s", "-a", b.ip)
	server.until(t, "listening")
	client := a.spawn(t, "nd_rping", "-c", "-v", "-V", "-S", "26", "-a", b.ip)
	beat := watchPulse(client)
	beat.further(t, 200)
	for _, x := range append(failures("Backup"), failure{"ip link set s1 up", [2]string{"Connected Active", "Connected Backup"}}) {
		beat.again()
		a.shell(t, x.command)
		a.stands(t, x.command, x.roles[:]...)
		beat.further(t, 200)
		t.Logf("%s: pings stood still for %v at most", x.command, beat.again().Round(time.Millisecond))
	}
	if s := a.status(t).Teams[0]; s.FailOvers < 1 || s.FailBacks < 1 {
		t.Errorf("the team is %+v", s)
	}
	if err := client.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	client.wait(t)
	for _, want := range []string{
		"port: member interface m0 of its team is Disconnected; its role is Backup.",
		"port: member interface m1 of its team is Connected, and its role is Active.",
		"port: member interface m1 of its team is Disconnected; its role is Backup.",
	} {
		await.Eventually(t, want, func() bool { return strings.Contains(a.ok(t, "events", "list"), want) })
	}
}

// twoMembers makes two interfaces of the host, m0 and m1, which are at a bridge of it, as its wire is: by the links s0 and s1.
func (h *linuxHost) twoMembers(t *testing.T) {
	t.Helper()
	h.shell(t, "ip link add lan type bridge; ip link set wire master lan; ip link set lan up")
	for i := range 2 {
		h.shell(t, fmt.Sprintf("ip link add m%d type veth peer name s%[1]d; ip link set s%[1]d master lan; "+
			"ip link set s%[1]d up; ip link set m%[1]d up", i))
	}
}

// stands waits until the members of the host's team are so, as "Connected Active".
func (h *linuxHost) stands(t *testing.T, when string, roles ...string) {
	t.Helper()
	await.Eventually(t, when, func() bool {
		for i, m := range h.status(t).Teams[0].Members {
			if m.Status+" "+m.Role != roles[i] {
				return false
			}
		}
		return true
	})
}

// pulse is how a program goes on that prints a line for each thing that it has done.
type pulse struct {
	of      *process
	mu      sync.Mutex
	lines   int
	last    time.Time
	longest time.Duration // between two lines
}

// watchPulse reads the lines of a program from now on, until it ends.
func watchPulse(x *process) *pulse {
	p := &pulse{of: x, last: time.Now()}
	go func() {
		for {
			select {
			case <-x.ended:
				return
			case <-x.line:
			}
			p.mu.Lock()
			p.lines++
			p.longest, p.last = max(p.longest, time.Since(p.last)), time.Now()
			p.mu.Unlock()
		}
	}()
	return p
}

// again returns the longest pause, and begins to look for another.
func (p *pulse) again() (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest, p.longest = p.longest, 0
	return longest
}

// further waits for more lines. That the program has ended fails the test.
func (p *pulse) further(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.lines
	}
	from := count()
	await.Eventually(t, "pings go on", func() bool {
		select {
		case <-p.of.ended:
			t.Fatalf("the program has ended: %s", p.of.errors())
		default:
		}
		return count() >= from+more
	})
}
