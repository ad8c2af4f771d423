package lan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

// ring returns switches s0, s1... in a ring, with a host each, lossless at priority 3.
func ring(t *testing.T, n int, told *[]state.Incident) *bench {
	t.Helper()
	port := ethernet.PortConfig{Rate: 1e9, Trust: ethernet.TrustDSCP, FlowControl: ethernet.PriorityPause, Lossless: 1 << 3, PVID: 1}
	port.Groups[3] = ethernet.Group{Xoff: 30_000}
	cfg := Config{Timing: true, Tell: func(x state.Incident) {
		if told != nil {
			*told = append(*told, x)
		}
	}}
	for i := range n {
		station := &ethernet.StationConfig{Wire: port, Waiting: 64 << 10}
		cfg.Nodes = append(cfg.Nodes, Node{Name: fmt.Sprintf("h%d", i), Own: true, Station: station})
		cfg.Links = append(cfg.Links, Link{ethernet.End{Node: i}, ethernet.End{Node: n + i}},
			Link{ethernet.End{Node: n + i, Port: 1}, ethernet.End{Node: n + (i+1)%n, Port: 2}})
	}
	for i := range n {
		cfg.Nodes = append(cfg.Nodes, Node{Name: fmt.Sprintf("s%d", i), Ports: []ethernet.PortConfig{port, port, port}})
	}
	x, err := New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, x, 0}
}

// twoOn lets each host of a ring send to the one two links on, for a time, and returns how many frames arrive.
func (b *bench) twoOn(jacks []*Jack, d time.Duration) (got int) {
	for until := b.now.Add(d); b.now < until; {
		for i, j := range jacks {
			for j.Transmit(b.now, packet(i, (i+2)%len(jacks), 3<<3, 1500)) {
			}
		}
		b.to(b.now.Add(50 * time.Microsecond))
		for _, j := range jacks {
			for j.Waiting() > 0 {
				if !control(j.Next(b.now)) { // adapters get the pauses too
					got++
				}
				b.Advance(b.now)
			}
		}
	}
	return got
}

// Three switches in a ring whose routes a command makes a circle end in a deadlock: the watch names the ports that wait for each other,
// and that they go on after a cable was out for a moment.
func TestDeadlockByCommand(t *testing.T) {
	var told []state.Incident
	b := ring(t, 3, &told)
	var jacks []*Jack
	for i := range 3 {
		jacks = append(jacks, b.plug(fmt.Sprintf("h%d", i)))
	}
	b.learned(jacks...)
	if got := b.twoOn(jacks, 300*time.Millisecond); got == 0 || len(told) != 0 {
		t.Fatalf("before: %d frames arrive, %v", got, told)
	}
	b.do("circle s0,s1,s2")
	b.twoOn(jacks, time.Second)
	if got := b.twoOn(jacks, 100*time.Millisecond); got != 0 {
		t.Errorf("%d frames arrive in a deadlock", got)
	}
	const cycle = "s0[2] priority 3, s1[2] priority 3, s2[2] priority 3"
	if b.Deadlock() != cycle {
		t.Errorf("the deadlock is %q, want %q", b.Deadlock(), cycle)
	}
	deadlocks := 0
	for _, x := range told {
		if x.Kind == "deadlock" {
			deadlocks++
		}
	}
	if out := b.do("incidents"); deadlocks != 1 || !strings.Contains(out, "these wait for each other: "+cycle) ||
		!strings.Contains(out, "now in a deadlock: "+cycle) || !strings.Contains(out, "storm: s1[2] priority 3 is paused for long") {
		t.Errorf("%d deadlocks are told of\n%s", deadlocks, out)
	}
	b.do("circle none")
	b.do("flap s0[2] 5ms")
	if got := b.twoOn(jacks, 2*time.Second); got == 0 || b.Deadlock() != "" {
		t.Errorf("after a flap %d frames arrive, deadlock %q", got, b.Deadlock())
	}
	if out := b.do("incidents"); !strings.Contains(out, "deadlock: "+cycle+" go on") || !strings.Contains(out, "storm: s1[2] priority 3 goes on") {
		t.Errorf("incidents are\n%s", out)
	}
	for command, want := range map[string]string{
		"circle s0,s1": "three switches or more", "circle s0,s1,s1": "each once", "circle s0,h1,s2": "no switch of the Ethernet",
	} {
		if _, _, err := b.Command(b.now, strings.Fields(command)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}

// A pause storm of a host is told of, with the port that it keeps silent, and its end.
func TestStormIsToldOf(t *testing.T) {
	var told []state.Incident
	b := ring(t, 3, &told)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	b.do("storm h1 3")
	b.flood(from, to, time.Second)
	b.do("storm h1 none")
	b.to(b.now.Add(time.Second))
	var all []string
	for _, x := range told {
		all = append(all, x.String())
	}
	if text := strings.Join(all, "\n"); !strings.Contains(text, "storm: s1[1] priority 3 is paused for long") ||
		!strings.Contains(text, "storm: s1[1] priority 3 goes on") || strings.Contains(text, "deadlock") {
		t.Errorf("told of\n%s", text)
	}
	for range 3 * mostIncidents {
		b.note(b.now, "storm", false, "x")
	}
	if n := len(b.Incidents()); n != mostIncidents {
		t.Errorf("%d incidents are kept", n)
	}
}
