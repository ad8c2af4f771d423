package lease

import (
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/transport"
)

// moved returns how many messages the programs have moved on the pair.
func (r *Lease) moved() (n uint64) {
	for i := range r.record.Way {
		for op := range direct.Counts {
			n += r.record.Way[i].Count(op).Messages
		}
	}
	return n
}

// fold adds what was moved to the counters of the adapters.
func (r *Lease) fold() {
	for i := range r.record.Way {
		q, p := &r.ends[i], &r.ends[1-i]
		for op := range direct.Counts {
			now, was := r.record.Way[i].Count(op), &r.counted[i][op]
			from, to := q.Engine.Counters(), p.Engine.Counters()
			from.DirectMessages += now.Messages - was.Messages
			from.DirectBytes += now.Bytes - was.Bytes
			if op == direct.CountRead || op == direct.CountAtomic {
				from, to = to, from
			}
			from.LocalOutboundPackets += now.Packets - was.Packets
			from.LocalOutboundBytes += now.Bytes - was.Bytes
			to.LocalInboundPackets += now.Packets - was.Packets
			to.LocalInboundBytes += now.Bytes - was.Bytes
			*was = now
		}
	}
}

// Returned says why the program of a queue pair last left one of its requests on the pair to the driver.
func (r *Lease) Returned(q *transport.QP) string {
	for i := range r.ends {
		if r.ends[i].QP == q {
			return r.record.Way[i].Returned()
		}
	}
	return ""
}
