package ring

import (
	"strings"
	"testing"
)

// A small model checker. Processes are programs of atomic steps on a shared state; explore visits every interleaving
// of them under sequential consistency, which sync/atomic guarantees (Go memory model).

const modelProcs = 3

// model is the state of the shared words and of every process's variables.
type model struct {
	// The doorbell queue, with two entries, and its flags, as in Doorbells.
	producer, consumer uint8
	cell               [2]uint8 // 0 empty, else number + 1
	scan, sleep        bool
	token              bool // the eventfd or pipe
	// The rings of two QPs: requests posted, requests taken.
	posted, taken [2]uint8
	// A CQ.
	pushed, polled     uint8
	arm                bool
	sequence, sleepers uint8
	futexAsleep        bool
	futexWoken         bool
	reg                [modelProcs][3]uint8 // local variables
	doorbellsLost      uint8
}

// step does one atomic action and returns the next step; blocked means that it cannot be done now.
type step func(*model) (next int, blocked bool)

type node struct {
	m  model
	pc [modelProcs]int8
}

const done = 1000

func to(pc int) (int, bool) { return pc, false }

// explore returns the number of states, and the trace to the first state in which no process can move although final
// does not hold.
func explore(start model, procs [][]step, final func(*model) bool) (states int, trace string) {
	type edge struct {
		from node
		proc int
	}
	first := node{m: start}
	seen := map[node]edge{first: {}}
	work := []node{first}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		moved := false
		for p, prog := range procs {
			if int(n.pc[p]) >= len(prog) {
				continue
			}
			next := n
			pc, blocked := prog[n.pc[p]](&next.m)
			if blocked {
				continue
			}
			next.pc[p] = int8(min(pc, 100))
			moved = true
			if _, ok := seen[next]; !ok {
				seen[next] = edge{n, p}
				work = append(work, next)
			}
		}
		if !moved && !final(&n.m) {
			var b strings.Builder
			for n != first {
				e := seen[n]
				b.WriteString(string(rune('A' + e.proc)))
				n = e.from
			}
			return len(seen), "steps in reverse: " + b.String()
		}
	}
	return len(seen), ""
}

// poster posts n requests to QP q and rings the doorbell after each: Send.Post, Doorbells.Ring and the wake-up.
func poster(p int, q uint8, n uint8) []step {
	return []step{
		0: func(m *model) (int, bool) { m.posted[q]++; return to(1) },            // producer index of the ring
		1: func(m *model) (int, bool) { m.reg[p][0] = m.producer; return to(2) }, // load producer
		2: func(m *model) (int, bool) { // load consumer
			if m.reg[p][0]-m.consumer >= 2 {
				return to(3)
			}
			return to(4)
		},
		3: func(m *model) (int, bool) { m.scan = true; m.doorbellsLost++; return to(6) },
		4: func(m *model) (int, bool) { // compare and swap producer
			if m.producer != m.reg[p][0] {
				return to(1)
			}
			m.producer++
			return to(5)
		},
		5: func(m *model) (int, bool) { m.cell[m.reg[p][0]%2] = q + 1; return to(6) },
		6: func(m *model) (int, bool) { // load the sleep flag
			if m.sleep {
				return to(7)
			}
			return to(9)
		},
		7: func(m *model) (int, bool) { // swap it
			was := m.sleep
			m.sleep = false
			if was {
				return to(8)
			}
			return to(9)
		},
		8: func(m *model) (int, bool) { m.token = true; return to(9) },
		9: func(m *model) (int, bool) {
			if m.reg[p][1]++; m.reg[p][1] < n {
				return to(0)
			}
			return to(done)
		},
	}
}

// looper is the loop: Drain, taking the requests of the rung QPs, Sleep, the sleep and Awake. early is a broken
// variant that looks before it sets the flag.
func looper(p int, early bool) []step {
	take := func(m *model, q uint8) { m.taken[q] = m.posted[q] }
	look := func(m *model) bool { return m.scan || m.cell[m.consumer%2] != 0 }
	return []step{
		0: func(m *model) (int, bool) { // load and clear scan
			m.reg[p][0] = 0
			if m.scan {
				return to(1)
			}
			return to(2)
		},
		1: func(m *model) (int, bool) { m.scan = false; m.reg[p][0] = 1; return to(2) },
		2: func(m *model) (int, bool) { // load the cell
			m.reg[p][1] = m.cell[m.consumer%2]
			if m.reg[p][1] == 0 {
				return to(6)
			}
			return to(3)
		},
		3: func(m *model) (int, bool) { m.cell[m.consumer%2] = 0; return to(4) },
		4: func(m *model) (int, bool) { m.consumer++; return to(5) },
		5: func(m *model) (int, bool) { take(m, m.reg[p][1]-1); return to(2) },
		6: func(m *model) (int, bool) { // scan all QPs, one after the other
			if m.reg[p][0] == 0 {
				return to(8)
			}
			take(m, 0)
			return to(7)
		},
		7: func(m *model) (int, bool) { take(m, 1); return to(8) },
		8: func(m *model) (int, bool) {
			if early {
				if look(m) {
					return to(0)
				}
				return to(9)
			}
			m.sleep = true
			return to(9)
		},
		9: func(m *model) (int, bool) { // look again: scan
			if early {
				m.sleep = true
				return to(11)
			}
			if m.scan {
				return to(12)
			}
			return to(10)
		},
		10: func(m *model) (int, bool) { // and the cell
			if m.cell[m.consumer%2] != 0 {
				return to(12)
			}
			return to(11)
		},
		11: func(m *model) (int, bool) { // sleep until the token is set
			if !m.token {
				return 0, true
			}
			m.token = false
			return to(12)
		},
		12: func(m *model) (int, bool) { m.sleep = false; return to(0) },
	}
}

func allTaken(m *model) bool { return m.taken == m.posted }

// TestModelDoorbells: no request is left behind a loop that sleeps, in any interleaving of two posting threads and
// the loop, also when the queue overflows.
func TestModelDoorbells(t *testing.T) {
	n, trace := explore(model{}, [][]step{poster(0, 0, 3), poster(1, 1, 2), looper(2, false)}, allTaken)
	if trace != "" {
		t.Errorf("a request is left behind: %s", trace)
	}
	t.Logf("%d states", n)
	if n < 10000 {
		t.Errorf("only %d states: the model does not interleave", n)
	}
}

// TestModelFindsLostWake: the checker finds the lost wake-up of a loop that looks before it sets its flag.
func TestModelFindsLostWake(t *testing.T) {
	if _, trace := explore(model{}, [][]step{poster(0, 0, 1), {}, looper(2, true)}, allTaken); trace == "" {
		t.Error("the lost wake-up was not found")
	}
}

// pusher is the loop completing n requests: CQ.Push, Fire and the futex wake-up.
func pusher(p int, n uint8) []step {
	return []step{
		0: func(m *model) (int, bool) { m.pushed++; return to(1) },
		1: func(m *model) (int, bool) { // load arm
			if m.arm {
				return to(2)
			}
			return to(5)
		},
		2: func(m *model) (int, bool) { // swap arm
			was := m.arm
			m.arm = false
			if was {
				return to(3)
			}
			return to(5)
		},
		3: func(m *model) (int, bool) { m.sequence++; return to(4) },
		4: func(m *model) (int, bool) { // load sleepers, wake
			if m.sleepers > 0 && m.futexAsleep {
				m.futexAsleep, m.futexWoken = false, true
			}
			return to(5)
		},
		5: func(m *model) (int, bool) {
			if m.reg[p][0]++; m.reg[p][0] < n {
				return to(0)
			}
			return to(done)
		},
	}
}

// waiter polls, arms, polls again, and sleeps in the futex. blind is a broken variant that does not poll after
// arming.
func waiter(p int, blind bool) []step {
	return []step{
		0: func(m *model) (int, bool) { m.polled = m.pushed; return to(1) },
		1: func(m *model) (int, bool) { m.reg[p][0] = m.sequence; return to(2) },
		2: func(m *model) (int, bool) { m.arm = true; return to(3) },
		3: func(m *model) (int, bool) { // poll once more
			if !blind && m.polled != m.pushed {
				return to(0)
			}
			return to(4)
		},
		4: func(m *model) (int, bool) { m.sleepers++; return to(5) },
		5: func(m *model) (int, bool) { // the kernel compares and puts to sleep in one step
			if m.sequence != m.reg[p][0] {
				return to(7)
			}
			m.futexAsleep = true
			return to(6)
		},
		6: func(m *model) (int, bool) {
			if !m.futexWoken {
				return 0, true
			}
			m.futexWoken = false
			return to(7)
		},
		7: func(m *model) (int, bool) { m.sleepers--; return to(0) },
	}
}

func allPolled(m *model) bool { return m.polled == m.pushed }

// TestModelCompletions: no completion is left behind a waiter that sleeps.
func TestModelCompletions(t *testing.T) {
	n, trace := explore(model{}, [][]step{pusher(0, 5), waiter(1, false), {}}, allPolled)
	if trace != "" {
		t.Errorf("a completion is left behind: %s", trace)
	}
	t.Logf("%d states", n)
	if n < 200 {
		t.Errorf("only %d states: the model does not interleave", n)
	}
}

// TestModelFindsLostEvent: the checker finds the lost event of a waiter that does not poll after arming.
func TestModelFindsLostEvent(t *testing.T) {
	if _, trace := explore(model{}, [][]step{pusher(0, 2), waiter(1, true), {}}, allPolled); trace == "" {
		t.Error("the lost event was not found")
	}
}
