package wait

// Polling is how long the loop looks for an adapter's packets before it sleeps, beyond the spin of Background and EmbeddedWait
// (WinOF 5.50, 4.6.5: RecvCompletionMethod, ThreadPoll, AverageFactor, AveragePollThreshold,
// ThisPollThreshold). A round is one turn of the loop. The zero value adds nothing.
type Polling struct {
	// On activates the fields below.
	On bool
	// Rounds without a packet are polled before the loop sleeps; 0: this rule is off.
	Rounds uint32
	// Weight of the last round in the moving average of packets in a round, in 256ths, 0 to 256.
	Weight uint32
	// The loop keeps polling while the average is above Average, or the last round brought more than Last.
	Average, Last uint32
}

// Rounds is the state of an adapter's Polling.
type Rounds struct {
	empty   uint32 // consecutive rounds without a packet
	average uint64 // in 256ths of a packet
}

// Round records a round that brought n packets, and reports whether to keep polling.
func (p *Rounds) Round(c *Polling, n int) bool {
	if n > 0 {
		p.empty = 0
	} else if p.empty < ^uint32(0) {
		p.empty++
	}
	w := uint64(c.Weight)
	p.average = (p.average*(256-w) + uint64(n)*256*w) / 256
	return p.empty < c.Rounds || p.average > uint64(c.Average)*256 || n > int(c.Last)
}

// Empty returns the number of consecutive rounds without a packet.
func (p *Rounds) Empty() uint32 { return p.empty }
