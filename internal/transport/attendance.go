package transport

import "github.com/softvpi/softvpi/internal/clock"

// Program is what an engine knows of a program that takes completions: how soon it can be expected to answer a message. To
// a program that polls, the time until its peer sees its answer is everything, and the peer's program waits for the answer,
// while only the peer's QP waits for the acknowledgement. The zero value sleeps.
//
// Each program has its own: while one polls, another may wait for events, and the order in which its peer's completions
// come must be that of hardware adapters.
type Program struct {
	polls clock.Time // until when it counts as polling
}

// Polls records that the program polls its completion queues, and counts as doing so until then; 0: it sleeps.
func (p *Program) Polls(until clock.Time) { p.polls = until }

// attendance says how soon the program that takes a QP's completions can be expected to answer a message.
type attendance uint8

const (
	// unattended: the program sleeps, or has not polled for a while.
	unattended attendance = iota
	// polled: it polls its completion queues.
	polled
	// driven: it polls, and makes this very turn of the engine; it looks for completions directly afterwards.
	driven
)

// Drive tells the engine whose turn it is in the calls that follow; nil: that of no program.
func (e *Engine) Drive(p *Program) { e.driver = p }

// attendance returns that of the QP's program.
func (q *QP) attendance() attendance {
	p := q.program
	switch {
	case p == nil:
		return unattended
	case p == q.eng.driver:
		return driven
	case q.eng.now < p.polls:
		return polled
	}
	return unattended
}
