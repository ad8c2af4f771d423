package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// writeArgs ask for RDMA writes of Size bytes on the first QPs connections, with Depth outstanding on each, for some
// seconds.
type writeArgs struct {
	QPs, Size, Depth int
	Seconds          float64
}

// written is the result.
type written struct {
	Bytes   uint64
	Seconds float64
	Least   uint64 // completions of the connection with the fewest
	Most    uint64
}

func (e *endpoint) write(a writeArgs) (written, error) {
	counts := make([]uint64, a.QPs)
	post := func(n int) error {
		c := e.conns[n]
		return c.qp.PostSend(&verbs.SendWR{
			Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(0, a.Size)}, RemoteAddr: c.addr, RKey: c.rkey,
		})
	}
	start := time.Now()
	outstanding := 0
	for range a.Depth {
		for n := range a.QPs {
			if err := post(n); err != nil {
				return written{}, err
			}
			outstanding++
		}
	}
	var w written
	wcs := make([]verbs.WC, 64)
	end := start.Add(time.Duration(a.Seconds * float64(time.Second)))
	for outstanding > 0 {
		k, err := e.next(wcs)
		if err != nil {
			return w, fmt.Errorf("%d outstanding: %w", outstanding, err)
		}
		now := time.Now()
		for i := range wcs[:k] {
			if wcs[i].Status != verbs.Success {
				return w, fmt.Errorf("connection %d: %v", wcs[i].Context, wcs[i].Status)
			}
			outstanding--
			if now.After(end) {
				continue
			}
			w.Bytes += uint64(a.Size)
			w.Seconds = now.Sub(start).Seconds()
			counts[wcs[i].Context]++
			if err := post(int(wcs[i].Context)); err != nil {
				return w, err
			}
			outstanding++
		}
	}
	w.Least, w.Most = counts[0], counts[0]
	for _, n := range counts {
		w.Least, w.Most = min(w.Least, n), max(w.Most, n)
	}
	return w, nil
}

// next takes completions, and waits for them.
func (e *endpoint) next(wcs []verbs.WC) (int, error) {
	for range 100 {
		if n, err := e.cq.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	return e.cq.Next(ctx, wcs)
}

// run starts endless writes, reads and sends on all connections, and returns when each has completed one. Programs
// that are about to be killed run it.
func (e *endpoint) run(a struct{ Size int }) (struct{}, error) {
	done := make(chan error, 1)
	go func() {
		count := make([]int, e.cfg.QPs)
		left := e.cfg.QPs
		post := func(n int) error {
			c := e.conns[n]
			op := []verbs.Opcode{verbs.OpWrite, verbs.OpRead}[count[n]%2]
			return c.qp.PostSend(&verbs.SendWR{Op: op, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(0, a.Size)}, RemoteAddr: c.addr,
				RKey: c.rkey})
		}
		fail := func(err error) {
			if left > 0 {
				done <- err
			}
		}
		for range e.cfg.Depth {
			for n := range e.conns {
				if err := post(n); err != nil {
					fail(err)
					return
				}
			}
		}
		wcs := make([]verbs.WC, 16)
		for {
			k, err := e.next(wcs)
			if err != nil {
				fail(err)
				return
			}
			for i := range wcs[:k] {
				if wcs[i].Status != verbs.Success {
					fail(wcs[i].Status.Err())
					return
				}
				n := int(wcs[i].Context)
				if n >= len(count) {
					fail(fmt.Errorf("completion of connection %d", n)) // the rings were overwritten
					return
				}
				if count[n]++; count[n] == 2 {
					if left--; left == 0 {
						done <- nil
					}
				}
				if err := post(n); err != nil {
					fail(err)
					return
				}
			}
		}
	}()
	return struct{}{}, <-done
}
