package lan

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

const (
	// watchEvery is how often queues are looked at that wait for each other, while any is paused, and restEvery how often otherwise.
	watchEvery = 50 * time.Millisecond
	restEvery  = 500 * time.Millisecond
	// mostIncidents is how many incidents are kept.
	mostIncidents = 64
)

// watch looks for pauses that do not end: queues that were paused for long, and circles of queues that wait for each other.
type watch struct {
	ethernet.Watch
	next      clock.Time
	stormy    map[ethernet.Waiting]bool
	deadlock  string // what waits for each other; empty: nothing
	incidents []state.Incident
	noted     uint64
}

// look looks, if it is time.
func (n *Network) look(now clock.Time) {
	w := &n.watch
	if now < w.next {
		return
	}
	if w.Sites == nil {
		w.stormy = map[ethernet.Waiting]bool{}
		for i := range n.cfg.Nodes {
			w.Sites = append(w.Sites, n.fabric.Site(i))
		}
	}
	w.next = now.Add(restEvery)
	if n.lookAtStorms(now) {
		w.next = now.Add(watchEvery)
	}
	n.lookAtDeadlock(now)
}

// lookAtStorms notes storms that have begun or ended, and reports whether any queue is paused.
func (n *Network) lookAtStorms(now clock.Time) (paused bool) {
	n.Each(func(e ethernet.End) {
		p := n.fabric.Port(e)
		here, _ := p.Paused(now)
		paused = paused || here != 0
		stormy := p.Stormy()
		for i := range uint8(ethernet.Priorities) {
			q := ethernet.Waiting{End: e, Priority: i}
			if is := stormy>>i&1 != 0; is != n.watch.stormy[q] {
				text := "is paused for long"
				if n.watch.stormy[q] = is; !is {
					delete(n.watch.stormy, q)
					text = "goes on"
				}
				n.note(now, "storm", !is, fmt.Sprintf("%s priority %d %s", n.endName(e), i, text))
			}
		}
	})
	for i := range n.cfg.Nodes { // what the switch has for others that ask
		for _, ok := n.fabric.Switch(i).Storm(); ok; _, ok = n.fabric.Switch(i).Storm() {
		}
	}
	return paused
}

// lookAtDeadlock notes queues that wait for each other, and that they go on.
func (n *Network) lookAtDeadlock(now clock.Time) {
	w := &n.watch
	if cycle := w.Look(now); cycle != nil {
		if text := n.cycleText(cycle); text != w.deadlock {
			w.deadlock = text
			n.note(now, "deadlock", false, text)
		}
		return
	}
	if w.deadlock != "" && n.cycleText(w.Cycle(now)) != w.deadlock {
		n.note(now, "deadlock", true, w.deadlock+" go on")
		w.deadlock = ""
	}
}

// cycleText names queues each of which waits for the next.
func (n *Network) cycleText(cycle []ethernet.Waiting) string {
	var all []string
	for _, q := range cycle {
		all = append(all, fmt.Sprintf("%s priority %d", n.endName(q.End), q.Priority))
	}
	return strings.Join(all, ", ")
}

// note keeps an incident, and tells of it.
func (n *Network) note(now clock.Time, kind string, over bool, text string) {
	w := &n.watch
	w.noted++
	x := state.Incident{Number: w.noted, At: int64(now), Kind: kind, Over: over, Text: text}
	if w.incidents = append(w.incidents, x); len(w.incidents) > mostIncidents {
		w.incidents = w.incidents[:copy(w.incidents, w.incidents[1:])]
	}
	if n.cfg.Tell != nil {
		n.cfg.Tell(x)
	}
}

// Incidents returns the last incidents, the oldest first.
func (n *Network) Incidents() []state.Incident { return n.watch.incidents }

// Noted returns the number of the last incident; 0: there was none.
func (n *Network) Noted() uint64 { return n.watch.noted }

// Deadlock names the queues that wait for each other now; empty: none do.
func (n *Network) Deadlock() string { return n.watch.deadlock }

func listIncidents(n *Network, now clock.Time, _ []string) (string, error) {
	var b strings.Builder
	for _, x := range n.watch.incidents {
		fmt.Fprintf(&b, "%v ago: %s\n", now.Sub(clock.Time(x.At)).Round(time.Millisecond), x.String())
	}
	if n.watch.deadlock != "" {
		fmt.Fprintf(&b, "now in a deadlock: %s\n", n.watch.deadlock)
	}
	return b.String(), nil
}

// setCircle makes switches send all to the next.
func setCircle(n *Network, _ clock.Time, args []string) (string, error) {
	if n.domain == nil {
		return "", refuse("the Ethernet has one switch; allowed: in a fabric of three or more")
	}
	var nodes []int
	if args[0] != "none" {
		for name := range strings.SplitSeq(args[0], ",") {
			node := n.Find(name)
			if node < 0 || n.Host(node) {
				return "", refuse("node %q is no switch of the Ethernet", name)
			}
			nodes = append(nodes, node)
		}
		set := map[int]bool{}
		for _, x := range nodes {
			set[x] = true
		}
		if len(nodes) < 3 || len(set) < len(nodes) {
			return "", refuse("circle %q; allowed: three switches or more, each once, or none", args[0])
		}
	}
	if !n.domain.SetCircle(nodes) {
		return "", refuse("circle %q; allowed: switches of which each has a link to the next, and the last to the first", args[0])
	}
	return "", nil
}

// listSet returns the priorities of "3,4" or "all".
func listSet(text string) (uint8, error) {
	if text == "all" {
		return 0xff, nil
	}
	set, err := parsePriorities(text)
	if err == nil && bits.OnesCount8(set) == 0 {
		err = refuse("priorities %q; allowed: 0 to 7, such as 3 or 3,4, or all", text)
	}
	return set, err
}
