package packet_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// ipReceived returns how many IPv4 packets the system has received in this thread's network namespace (RFC 4293,
// ipSystemStatsInReceives).
func ipReceived() (n uint64, err error) {
	b, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		var forwards, ttl int
		if k, _ := fmt.Sscanf(line, "Ip: %d %d %d", &forwards, &ttl, &n); k == 3 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("no Ip in %q", b)
}

// inputOf sends short packets to a link on side 1, each as soon as the one before has arrived, and returns how many of so
// many went through the system's IP input, and how many came into memory.
func inputOf(t *testing.T, n *linktest.Namespaces, from, to udp.Link, many int) (input, memory uint64) {
	t.Helper()
	received := func() (k uint64) {
		n.In(1, func() (err error) { k, err = ipReceived(); return err })
		return k
	}
	r := routeTo(t, from, to)
	input, memory = received(), to.Stats().ReceivedFrames
	for i := range many {
		linktest.SendAll(t, from, linktest.Numbered(r, from.Capabilities(), uint32(i), 8))
		linktest.ReceiveN(t, to, 1)
	}
	return received() - input, to.Stats().ReceivedFrames - memory
}

// TestGate_SavesTheInput: packets that the gate takes do not go through the system's IP input, and do not count as lost;
// each adapter on an interface has a gate of its own. While tc has a program at the interface, the sockets' filters take
// them.
func TestGate_SavesTheInput(t *testing.T) {
	systemtest.Mark(t)
	n := linktest.NewNamespaces(t, 9000)
	l := pairOf(n, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	var other udp.Link
	n.In(1, func() (err error) {
		other, err = udp.Open(udp.Config{Addr: n.V4[1], Port: 4792, Frames: packet.On})
		return err
	})
	defer other.Close()
	links := []udp.Link{l[1], other}
	var refused error
	n.In(1, func() error {
		program, err := linktest.Ingress("b", linktest.Pass)
		if refused = err; err != nil {
			return nil
		}
		return program.Close()
	})
	if refused != nil {
		t.Skipf("this system attaches no programs (tcx, Linux 6.6): %v", refused)
	}
	const many = 200
	for i, to := range links {
		input, memory := inputOf(t, n, l[0], to, many)
		if input > many/4 || memory < many*3/4 {
			t.Errorf("link %d: of %d packets %d went through the input, %d came into memory", i, many, input, memory)
		}
	}
	var program io.Closer
	n.In(1, func() (err error) {
		if program, err = linktest.Ingress("b", linktest.Pass); err != nil {
			return err
		}
		for range 300 { // as often as it may take
			linktest.Tend(l[1])
			linktest.Tend(other)
		}
		return nil
	})
	defer program.Close()
	for i, to := range links {
		input, memory := inputOf(t, n, l[0], to, many)
		if input < many || memory < many*3/4 {
			t.Errorf("link %d behind tc: of %d packets %d went through the input, %d came into memory", i, many, input, memory)
		}
		if lost := to.Stats().ReceiveDrops; lost != 0 {
			t.Errorf("link %d: %d packets count as lost", i, lost)
		}
	}
}
