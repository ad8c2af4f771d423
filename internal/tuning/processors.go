package tuning

// MostProcessor is the highest number of a processor: that of a processor group.
const MostProcessor = 63

const mostQueues = 8 // the default of *NumRSSQueues

// processorRange are those of an adapter: Number processors from Base.
type processorRange struct{ Base, Number int }

func (p processorRange) last() int { return p.Base + p.Number - 1 }

// at returns the i-th of them, wrapping around; negative numbers count from the end.
func (p processorRange) at(i int) int { return p.Base + (i%p.Number+p.Number)%p.Number }

// queues returns the number of receive queues for them: a power of two, because RSS distributes evenly
// only over those.
func (p processorRange) queues() int {
	n := 1
	for n*2 <= p.Number && n < mostQueues {
		n *= 2
	}
	return n
}

// share divides a machine's processors among adapters. If there are fewer than adapters, they share them.
func share(processors, adapters int) []processorRange {
	processors = min(max(processors, 1), MostProcessor+1)
	out := make([]processorRange, adapters)
	for i := range out {
		if processors < adapters {
			out[i] = processorRange{i % processors, 1}
			continue
		}
		from, to := i*processors/adapters, (i+1)*processors/adapters
		out[i] = processorRange{from, to - from}
	}
	return out
}
