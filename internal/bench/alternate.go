package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	countersets "github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// pairsOfRound is how often per round a feature that is switched while a connection goes on is on and off: each pair is as long as half
// a run, in which the machine does not change much, and their ratios are compared, not the bandwidths of runs that are minutes apart.
const pairsOfRound = 12

// live is a feature that is switched while a connection goes on.
type live struct {
	part, name string
	least      float64 // of the bandwidth without it
	set        func(ctx context.Context, c *api.Client, on bool) error
}

// alternate measures writes on one connection between two drivers with a feature and without, in many short turns in random order. A
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
		s.add("on", x.on)
		s.add("off", x.off)
		if x.off > 0 {
			s.add("ratio", x.on/x.off)
		}
	}
	x := Row{Part: f.part, Name: f.row(size), Unit: "Gb/s", Value: s.median("on"), Low: slices.Min(s["on"]), High: slices.Max(s["on"]),
		Peer: "off", PeerValue: s.median("off"), Ratio: s.median("ratio"), Target: timesAtLeast(f.least)}
	x.RatioLow, x.RatioHigh = medianInterval(s["ratio"])
	met := x.RatioLow >= f.least
	x.Met = &met
	return x
}

// medianInterval returns between which two of the values the median of what they were drawn from lies, with 95 % or more (the interval
// of the sign test, from order statistics); all of them if there are fewer than 6.
func medianInterval(values []float64) (low, high float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return 0, 0
	}
	// 2 P(X < k) <= 5 % for X of the binomial distribution of n coins.
	k, p, below := 0, math.Pow(0.5, float64(n)), 0.
	for ; 2*(below+p) <= 0.05; k++ {
		below += p
		p *= float64(n-k) / float64(k+1)
	}
	k = max(k, 1)
	return v[k-1], v[n-k]
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
		ended <- cmp.Or(err, fmt.Errorf("the writes have ended"))
	}()
	stop := func() {
		cancel()
		<-ended
	}
	sender := api.NewClient(p.client.socket)
	sent := func() (uint64, error) { return sentBytes(ctx, sender) }
	for before, err := sent(); ; time.Sleep(time.Millisecond) { // until they have begun
		now := before
		if err == nil {
			now, err = sent()
		}
		select {
		case early := <-ended:
			return nil, early
		default:
		}
		if err != nil {
			stop()
			return nil, err
		}
		if now > before+1<<20 {
			break
		}
	}
	defer stop()
	length := r.duration() / 4
	turn := func(on bool) (float64, error) {
		for _, x := range []side{p.server, p.client} {
			if err := f.set(ctx, api.NewClient(x.socket), on); err != nil {
				return 0, err
			}
		}
		time.Sleep(length / 5) // what has left the old way is complete
		before, err := sent()
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		time.Sleep(length)
		after, err := sent()
		return 8 * float64(after-before) / time.Since(begun).Seconds() / (1 << 30), err
	}
	n := pairsOfRound * r.o.Rounds
	for i := range n {
		r.progress("%s: %s, pair %d of %d", f.part, inBytes(size), i+1, n)
		x, first := turnPair{}, rand.IntN(2) == 0
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
