package ethernet

import "github.com/softvpi/softvpi/internal/clock"

// reclaim completes the sends whose last frames were handed out before: nobody uses them any more.
func (f *Function) reclaim(now clock.Time) {
	f.lent = false
	if len(f.handed) == 0 {
		return
	}
	for _, d := range f.handed {
		f.send[d.queue].ring[d.send].done = true
	}
	for _, d := range f.handed {
		f.complete(now, d.queue)
	}
	f.handed = f.handed[:0]
}

// complete takes the sends that are complete from the front of a ring, and reports them when it is time.
func (f *Function) complete(now clock.Time, q int) {
	x := &f.send[q]
	n := uint32(0)
	for x.used > 0 && x.ring[x.first].done {
		p := &x.ring[x.first]
		x.c.Packets++
		x.c.Bytes += uint64(len(p.Frame))
		p.Frame, p.done = nil, false
		if x.first++; x.first == len(x.ring) {
			x.first = 0
		}
		x.used--
		n++
	}
	if n == 0 {
		return
	}
	x.completed += n
	if f.cfg.SendCompletionMethod == pollingMethod {
		if f.cfg.TransmitsMoveToDPC != 0 && x.completed >= uint32(f.cfg.MaxNumTxPacketsToIndicateComplete) {
			f.interruptSend(now, q)
		}
		return // until the next sends
	}
	switch p := f.pace.Send; {
	case p.Interval == 0 || p.Count != 0 && x.completed >= p.Count:
		f.interruptSend(now, q)
	case x.due == clock.Never:
		x.due = now.Add(p.Interval)
	}
}

// interruptSend is an interrupt of a send queue.
func (f *Function) interruptSend(now clock.Time, q int) {
	f.send[q].c.Interrupts++
	f.report(now, q)
}

// report tells the host of complete sends.
func (f *Function) report(now clock.Time, q int) {
	x := &f.send[q]
	n := x.completed
	x.completed, x.due = 0, clock.Never
	x.c.Completions += uint64(n)
	for most := f.cfg.MaxNumTxPacketsToIndicateComplete; n > 0; {
		k := min(int(n), most)
		n -= uint32(k)
		f.host.Sent(now, q, k)
	}
}

// Collect reports all sends that are complete, whatever is moderated. A host with SendCompletionMethod polling calls it when
// it wants to know without sending.
func (f *Function) Collect(now clock.Time) {
	for q := range f.send {
		f.report(now, q)
	}
}

// advanceSend does what is due for a send queue.
func (f *Function) advanceSend(now clock.Time, q int) {
	if f.send[q].due <= now {
		f.interruptSend(now, q)
	}
}
