package tuning

// MostProcessor is the highest number of a processor: that of a processor group.
const MostProcessor = 63

const mostQueues = 8 // the default of *NumRSSQueues

// Processors are those of an adapter: Number processors from Base.
type Processors struct{ Base, Number int }

func (p Processors) last() int { return p.Base + p.Number - 1 }

// at returns the i-th of them, wrapping around; negative numbers count from the end.
func (p Processors) at(i int) int { return p.Base + (i%p.Number+p.Number)%p.Number }

// queues returns the number of receive queues for them: a power of two, because RSS distributes evenly
// only over those.
func (p Processors) queues() int {
	n := 1
	for n*2 <= p.Number && n < mostQueues {
		n *= 2
	}
	return n
}

// share divides a machine's processors among adapters. If there are fewer than adapters, they share them.
func share(processors, adapters int) []Processors {
	processors = min(max(processors, 1), MostProcessor+1)
	out := make([]Processors, adapters)
	for i := range out {
		if processors < adapters {
			out[i] = Processors{i % processors, 1}
			continue
		}
		from, to := i*processors/adapters, (i+1)*processors/adapters
		out[i] = Processors{from, to - from}
	}
	return out
}
