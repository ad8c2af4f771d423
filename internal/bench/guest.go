package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// guestOutput parses what a guest prints: a line of JSON for each name and each result.
type guestOutput struct {
	samples samples
	seconds float64 // per run
	name    string
	all     float64 // messages of the run
	syscall float64
	done    bool
	err     error
	noise   []string // lines that are no result: kernel messages
}

// guestLine holds the possible contents of a line.
type guestLine struct {
	Name, Error string
	Status      *int
	Gbps        *float64
	All         float64
	Typical     float64 `json:"typical_us"`
	Syscall     float64 `json:"syscall_us"`
	// Of Soft-RoCE, during its run.
	Sent, Retries, Naks *float64
	// Of SoftVPI.
	Seconds  float64
	Counters map[string]uint64
}

// line handles a line of output and reports whether it was a result.
func (g *guestOutput) line(text string) bool {
	text = strings.TrimSpace(text)
	var x guestLine
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &x) != nil {
		g.noise = append(g.noise, text)
		return false
	}
	switch {
	case x.Error != "":
		g.err = errors.Join(g.err, fmt.Errorf("%s: %s", g.name, x.Error))
	case x.Name != "":
		g.name = x.Name
	case x.Status != nil:
		g.done = *x.Status == 0
	case x.Counters != nil && x.Gbps != nil:
		g.samples.addLossy(g.name, *x.Gbps, uint64(x.All), x.Seconds, x.Counters)
	case x.Sent != nil && x.Retries != nil && x.Naks != nil:
		if needed := g.all * lossPackets; needed > 0 {
			g.samples.add(g.name+" again", max(0, 100*(*x.Sent-needed)/needed))
		}
		// rxe counts every retry and, separately, those that a NAK requested.
		g.samples.add(g.name+" time-outs", max(0, *x.Retries-*x.Naks)/(1.25*g.seconds))
	case x.Syscall > 0:
		g.syscall = x.Syscall
		g.samples.add("syscall", x.Syscall)
	case x.Gbps != nil:
		g.samples.add(g.name, *x.Gbps)
		g.all = x.All
	case x.Typical > 0:
		_, op, _ := strings.Cut(g.name, " ")
		g.samples.add("net "+op, x.Typical-g.syscall)
	}
	return true
}

// end returns the error with which the guest ended, if any.
func (g *guestOutput) end() error {
	if g.err == nil && !g.done {
		return fmt.Errorf("the guest did not finish: %s", strings.Join(g.noise, "\n"))
	}
	return g.err
}

// lossPackets is the number of packets per message: 64 KB at path MTU 1024.
const lossPackets = 64

// addLossy adds a run of SoftVPI with packet loss.
func (s samples) addLossy(name string, gbps float64, all uint64, seconds float64, counters map[string]uint64) {
	s.add(name, gbps)
	if all > 0 {
		s.add(name+" again", 100*float64(counters["Retransmitted packets"])/float64(all*lossPackets))
	}
	s.add(name+" time-outs", float64(counters["Requester time out received"])/seconds)
}
