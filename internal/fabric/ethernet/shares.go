package ethernet

import "github.com/softvpi/softvpi/internal/qos"

// SharesOf returns the shares of queues as those of classes, of which each priority is one. They are percentages, whose sum is 100.
func SharesOf(queues *[Priorities]Queue) (e qos.ETS) {
	sum := 0
	for i, q := range queues {
		e.Class[i] = uint8(i)
		if !q.Strict {
			e.Algorithm[i] = qos.Enhanced
			sum += int(q.Weight)
		}
	}
	before, given := 0, 0
	for i, q := range queues {
		if q.Strict {
			continue
		}
		before += int(q.Weight)
		share := before*100/sum - given
		e.Bandwidth[i] = uint8(share)
		given += share
	}
	return e
}

// Follow gives queues the shares of classes.
func Follow(queues *[Priorities]Queue, e *qos.ETS) {
	for i := range queues {
		c := e.Class[i]
		queues[i].Strict, queues[i].Weight = e.Algorithm[c] == qos.Strict, max(e.Bandwidth[c], 1)
	}
}
