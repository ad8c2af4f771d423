package udp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/link/packet"
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

// TestGateSavesTheInput: a packet that the gate takes does not go through the system's IP input and does not count as
// lost. When it takes nothing, packets go through the input and arrive once.
func TestGateSavesTheInput(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 9000)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	const many = 200
	r := routeTo(t, l[0], l[1])
	next := uint32(1000)
	carry := func() (input uint64) { // each as soon as the one before has arrived
		received := func() (n64 uint64) {
			n.in(1, func() (err error) { n64, err = ipReceived(); return err })
			return n64
		}
		before := received()
		for range many {
			sendAll(t, l[0], numbered(r, l[0].Capabilities(), next, 8))
			receiveN(t, l[1], 1)
			next++
		}
		return received() - before
	}
	if input := carry(); input > many/4 {
		if l[1].(*socketLink).frames.port.Intake().Taken() == 0 {
			t.Skip("this system attaches no programs (tcx, Linux 6.6)")
		}
		t.Errorf("%d of %d short packets went through the input", input, many)
	}
	if lost := l[1].Stats().ReceiveDrops; lost != 0 {
		t.Errorf("%d packets count as lost", lost)
	}
	l[1].(*socketLink).frames.port.Intake().Stop()
	if input := carry(); input < many {
		t.Errorf("%d of %d packets for the socket went through the input", input, many)
	}
}

// TestGateOfEachPort: two adapters on one interface each have a gate of their own.
func TestGateOfEachPort(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 9000)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	var other Link
	n.in(1, func() (err error) {
		other, err = Open(Config{Addr: n.v4[1], Port: 4792, Frames: packet.On})
		return err
	})
	defer other.Close()
	sendAll(t, l[0], numbered(routeTo(t, l[0], l[1]), l[0].Capabilities(), 0, 8))
	receiveN(t, l[1], 1)
	if l[1].(*socketLink).frames.port.Intake().Taken() == 0 {
		t.Skip("this system attaches no programs (tcx, Linux 6.6)")
	}
	sendAll(t, l[0], numbered(routeTo(t, l[0], other), l[0].Capabilities(), 0, 8))
	receiveN(t, other, 1)
	if other.(*socketLink).frames.port.Intake().Taken() == 0 {
		t.Error("what came to the second adapter went through the system's input")
	}
}
