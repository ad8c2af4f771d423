package cm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// TestTranscripts plays the named cases of the protocol between two engines, a (10.0.0.1) and b (10.0.0.2), and
// compares every message and event. -rewrite writes the transcripts anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &script{names: map[string]named{}}
		datadriven.RunTest(t, path, s.run)
	})
}

// script carries out the commands of a transcript.
type script struct {
	*pair
	out   strings.Builder
	names map[string]named
	held  []flight
	lost  []byte // the message dropped last
	qpn   uint32
	// requests counts the requests that were reported: the latest is named r, and all of them r1, r2, ... in turn.
	requests int
}

type named struct {
	side *side
	id   ID
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	if err := newStep(s, t, d).do(); err != nil {
		fmt.Fprintf(&s.out, "error: %v\n", err)
	}
	if s.pair != nil {
		s.report()
	}
	if s.out.Len() == 0 {
		return "ok\n"
	}
	return s.out.String()
}

// report prints the events and names the ids of new requests.
func (s *script) report() {
	for _, side := range s.sides() {
		for _, v := range side.events() {
			fmt.Fprintf(&s.out, "%s: %v\n", side.name, v)
			if v.Type == EventConnectRequest {
				s.names["r"] = named{side, v.ID}
				s.requests++
				s.names[fmt.Sprintf("r%d", s.requests)] = named{side, v.ID}
			}
		}
	}
}

// wait lets time pass. With deaf, messages sent meanwhile are lost.
func (s *script) wait(until clock.Time, deaf bool) {
	for s.deadline() <= until {
		s.advance(s.deadline())
		fmt.Fprintf(&s.out, "[%v]\n", time.Duration(s.now).Round(time.Millisecond))
		s.report()
		if deaf {
			s.collect()
			for len(s.wire) > 0 {
				s.print(s.take(0), " (lost)")
			}
		} else {
			s.flow()
		}
	}
	s.now = until
}

func (s *script) flow() {
	for s.collect(); len(s.wire) > 0; s.collect() {
		f := s.take(0)
		s.print(f, "")
		s.deliver(f)
		s.report()
	}
}

func (s *script) print(f flight, note string) {
	fmt.Fprintf(&s.out, "%s>%s %s%s\n", f.from.name, s.other(f.from).name, describe(f.d.MAD[:]), note)
}

func (s *script) side(name string) *side {
	if name == "a" {
		return s.a
	}
	return s.b
}

func space(name string) command.PortSpace {
	return map[string]command.PortSpace{"tcp": command.TCP, "udp": command.UDP, "ib": command.IB}[name]
}
