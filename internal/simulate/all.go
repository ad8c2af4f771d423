package simulate

import (
	"context"
	"errors"
	"sync"

	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// Labelled is the result of a run of several, with what makes it differ.
type Labelled struct {
	Label  string  `json:"run,omitempty"`
	Result *Result `json:"result"`
}

// All runs scenarios, as many at a time as there are processors for, and returns their results in the same order. Where there are more
// processors than scenarios, each run has several. It asks progress for all together, one call at a time. The error is a
// *scenario.Error or the context's.
func All(ctx context.Context, runs []scenario.Labelled, processors int, progress func(Progress)) ([]Labelled, error) {
	results, errs := make([]Labelled, len(runs)), make([]error, len(runs))
	var mu sync.Mutex
	states := make([]Progress, len(runs))
	for i := range states {
		states[i].Of = runs[i].Duration
	}
	note := func(i int, p Progress) {
		mu.Lock()
		defer mu.Unlock()
		states[i] = p
		var all Progress
		for _, s := range states {
			all.Now += s.Now
			all.Of += s.Of
			all.Packets += s.Packets
		}
		progress(all)
	}
	next := make(chan int)
	var work sync.WaitGroup
	for range min(processors, len(runs)) {
		work.Go(func() {
			for i := range next {
				results[i], errs[i] = one(ctx, runs[i], processors/len(runs), func(p Progress) { note(i, p) })
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, e := range errs { // the first is enough
			if e != nil {
				return nil, e
			}
		}
	}
	return results, nil
}

func one(ctx context.Context, s scenario.Labelled, processors int, progress func(Progress)) (Labelled, error) {
	if err := ctx.Err(); err != nil {
		return Labelled{}, err
	}
	r, err := New(s.Scenario)
	if err != nil {
		return Labelled{}, err
	}
	x, err := r.Run(ctx, processors, progress)
	if err == nil {
		progress(Progress{Now: s.Duration, Of: s.Duration, Packets: x.Summary.Packets})
	}
	return Labelled{s.Label, x}, err
}
