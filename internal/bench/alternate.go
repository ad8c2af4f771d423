package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	countersets "github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// A turn is so short that the machine, and what else it does, is mostly the same in the next one, and that what disturbs one of a pair
// is one pair of very many, which the median passes over: in writes that nothing was switched in, whose rate noise changed by 20 % from
// turn to turn, a minute of turns of 20 ms had intervals of 0.4 to 0.9 % to each side, one of turns of 0.4 s of 1.6 to 3.5 %.
const (
	turnTime   = 20 * time.Millisecond
	settleTime = turnTime / 10 // until what has left the old way is complete
	// runsOfRound is how many runs' time the turns of a round take together.
	runsOfRound = 6
	// leastRate is what a turn counts in which nothing was sent, in Gb/s: the pair of it counts, and its ratio is a number.
	leastRate = 0.001
)

// live is a feature that is switched while a connection goes on.
type live struct {
	part, name string
	least      float64 // of the bandwidth without it
	// set is called before each turn, also if the feature is already as it is to be. What it does should cost the turn that follows
	// as much for on as for off.
	set func(ctx context.Context, c *api.Client, on bool) error
}

// alternate measures writes on one connection between two drivers with a feature and without, in very many short turns (inOrder). A
// row has the median of the ratios of each two turns, and the interval in which the true one lies with 95 %; the aim is met if all of
// the interval meets it.
func (r *runner) alternate(f live) error {
	var sizes []int
	for _, size := range turnSizes {
		if r.o.names(f.row(size)) {
			sizes = append(sizes, size)
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	p, stop, err := r.drivers()
	if err != nil {
		return err
	}
	defer stop()
	for _, size := range sizes {
		pairs, err := r.turnsOf(f, p, size)
		if err != nil {
			return err
		}
		r.report.Rows = append(r.report.Rows, f.result(size, pairs))
	}
	return nil
}

func (f *live) row(size int) string { return fmt.Sprintf("write of %s, %s", inBytes(size), f.name) }

// turnPair are the Gb/s of two turns.
type turnPair struct{ on, off float64 }

// result returns the row of a size.
func (f *live) result(size int, pairs []turnPair) Row {
	s := samples{}
	for _, x := range pairs {
		s.add("value", x.on)
		s.add("peer", x.off)
		s.add("ratio", max(x.on, leastRate)/max(x.off, leastRate))
	}
	return s.paired(Row{Part: f.part, Name: f.row(size), Unit: "Gb/s", Peer: "off"}, timesAtLeast(f.least))
}

// turnsOf measures a size.
func (r *runner) turnsOf(f live, p *path, size int) (list []turnPair, err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	writes := *r
	writes.ctx = ctx
	ended := make(chan error, 1)
	go func() { // until it is ended
		_, err := writes.rdma(p, ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(size), "-D", "36000")
		ended <- cmp.Or(err, errors.New("the writes have ended"))
		close(ended)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	drivers := [2]*api.Client{api.NewClient(p.client.socket), api.NewClient(p.server.socket)}
	if err := begun(ctx, drivers[0], ended); err != nil {
		return nil, err
	}
	turn := func(on bool) (float64, error) {
		var each [len(drivers)]error
		var both sync.WaitGroup
		for i, c := range drivers {
			both.Go(func() { each[i] = f.set(ctx, c, on) })
		}
		both.Wait()
		if err := errors.Join(each[:]...); err != nil {
			return 0, err
		}
		time.Sleep(settleTime)
		before, err := readSent(ctx, drivers[0])
		if err != nil {
			return 0, err
		}
		time.Sleep(turnTime)
		after, err := readSent(ctx, drivers[0])
		if err != nil {
			return 0, err
		}
		select {
		case early := <-ended:
			return 0, early
		default:
			return after.since(&before), nil
		}
	}
	n := r.turnPairs()
	for i, first := range inOrder(n, func() bool { return rand.IntN(2) == 0 }) {
		if i%50 == 0 {
			r.progress("%s: %s, pair %d of %d", f.part, inBytes(size), i+1, n)
		}
		x := turnPair{}
		for _, on := range []bool{first, !first} {
			v, err := turn(on)
			if err != nil {
				return nil, err
			}
			if on {
				x.on = v
			} else {
				x.off = v
			}
		}
		list = append(list, x)
	}
	return list, nil
}

// turnPairs returns how many pairs of turns a size is measured in.
func (r *runner) turnPairs() int {
	return int(max(1, runsOfRound*time.Duration(r.o.Rounds)*r.duration()/(2*turnTime)))
}

// inOrder says of n pairs of turns whether the feature is on in the first turn or in the second. Of each two pairs one begins with it on
// and one with it off (ABBA), so that what changes steadily meanwhile favors neither, and which of them is first is random, so that
// what recurs does not either.
func inOrder(n int, coin func() bool) []bool {
	order := make([]bool, 0, n+1)
	for len(order) < n {
		first := coin()
		order = append(order, first, !first)
	}
	return order[:n]
}

// begun waits until a driver sends, or the program that has it send has ended.
func begun(ctx context.Context, c *api.Client, ended <-chan error) error {
	for before, err := sentBytes(ctx, c); ; time.Sleep(time.Millisecond) {
		now := before
		if err == nil {
			now, err = sentBytes(ctx, c)
		}
		select {
		case early := <-ended:
			return early
		default:
		}
		if err != nil || now > before+1<<20 {
			return err
		}
	}
}

// sent is how many bytes a driver had sent at a time.
type sent struct {
	bytes uint64
	at    time.Time
}

// readSent reads it. The time is the middle of the call, as nobody knows when in it the driver looked.
func readSent(ctx context.Context, c *api.Client) (s sent, err error) {
	asked := time.Now()
	s.bytes, err = sentBytes(ctx, c)
	s.at = asked.Add(time.Since(asked) / 2)
	return s, err
}

// since returns the Gb/s since an earlier reading.
func (s *sent) since(before *sent) float64 {
	return 8 * float64(s.bytes-before.bytes) / s.at.Sub(before.at).Seconds() / (1 << 30)
}

// sentBytes returns how many bytes of frames a driver's adapter has sent.
func sentBytes(ctx context.Context, c *api.Client) (sum uint64, err error) {
	var s countersets.Snapshot
	if err := c.Get(ctx, "/counters", url.Values{"path": {"adapter_traffic.sent_bytes"}}, &s); err != nil {
		return 0, err
	}
	for i := range s.Instances {
		for _, v := range s.Instances[i].Values {
			if v.Raw != nil {
				sum += *v.Raw
			}
		}
	}
	return sum, nil
}
