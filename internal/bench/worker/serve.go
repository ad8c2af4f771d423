package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
)

// ServeArgs request that a service be offered.
type ServeArgs struct {
	Service string // a name of Services
	// Network is "tcp" or "rdma"; the latter needs an open adapter.
	Network string
	Addr    netip.Addr
}

// LoadArgs request calls to a service that another worker offers.
type LoadArgs struct {
	Service, Network    string
	Local               netip.Addr
	Remote              netip.AddrPort
	Connections         int // each calls as fast as it is answered
	Bytes               int // of a request, and of an answer
	Seconds             float64
	SecondsBeforeCounts float64 // calls in this time at the start do not count
}

// Loaded is the result.
type Loaded struct {
	Rate    float64 `json:"per_second"` // calls of all connections
	Connect float64 `json:"connect"`    // seconds until all were connected
	P50     float64 `json:"p50_us"`     // of a call
	P99     float64 `json:"p99_us"`
}

func service(name string) (Service, error) {
	if s := Services[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("no service %q; allowed: %s", name, strings.Join(slices.Sorted(maps.Keys(Services)), ", "))
}

// adapter returns the adapter for connections of package rdmanet.
func (w *worker) adapter(addr netip.Addr) (*nd.Adapter, error) {
	if w.host == nil {
		return nil, errors.New("no adapter is open")
	}
	if w.nd == nil {
		a, err := nd.NewProvider(w.host).OpenAdapterAt(addr)
		if err != nil {
			return nil, err
		}
		w.nd = a
	}
	return w.nd, nil
}

// serve offers a service until the worker ends, or serves again, and returns where.
func (w *worker) serve(a ServeArgs) (at netip.AddrPort, err error) {
	s, err := service(a.Service)
	if err != nil {
		return at, err
	}
	var l net.Listener
	if a.Network == "tcp" {
		l, err = net.Listen("tcp", netip.AddrPortFrom(a.Addr, 0).String())
	} else {
		var on *nd.Adapter
		if on, err = w.adapter(a.Addr); err == nil {
			l, err = (&rdmanet.ListenConfig{Adapter: on}).Listen(w.ctx, netip.AddrPortFrom(a.Addr, 0).String())
		}
	}
	if err != nil {
		return at, err
	}
	w.serving = append(w.serving, l)
	go func() { _ = s.Serve(l) }()
	return netip.ParseAddrPort(l.Addr().String())
}

func (w *worker) dialer(a *LoadArgs) (Dial, error) {
	if a.Network == "tcp" {
		return func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", a.Remote.String())
		}, nil
	}
	from, err := w.adapter(a.Local)
	if err != nil {
		return nil, err
	}
	d := &rdmanet.Dialer{Adapter: from}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "rdma", a.Remote.String()) }, nil
}

// load calls a service.
func (w *worker) load(a LoadArgs) (r Loaded, err error) {
	s, err := service(a.Service)
	if err != nil {
		return r, err
	}
	dial, err := w.dialer(&a)
	if err != nil {
		return r, err
	}
	calls, closes := make([]func() error, a.Connections), make([]func() error, a.Connections)
	defer func() {
		_ = each(len(closes), func(n int) error {
			if closes[n] == nil {
				return nil
			}
			return closes[n]()
		})
	}()
	start := time.Now()
	if err := each(a.Connections, func(n int) (err error) {
		calls[n], closes[n], err = s.Client(dial, a.Bytes)
		return err
	}); err != nil {
		return r, err
	}
	r.Connect = time.Since(start).Seconds()
	trips, err := burden(calls, a.SecondsBeforeCounts, a.Seconds)
	if err != nil || len(trips) == 0 {
		return r, err
	}
	slices.Sort(trips)
	us := func(p float64) float64 { return float64(trips[int(p*float64(len(trips)-1))]) / 1000 }
	r.Rate, r.P50, r.P99 = float64(len(trips))/a.Seconds, us(0.5), us(0.99)
	return r, nil
}

// burden runs all calls over and over, at the same time, and returns how long each took that ended within the
// seconds that count.
func burden(calls []func() error, before, seconds float64) ([]time.Duration, error) {
	span := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	from := time.Now().Add(span(before))
	to := from.Add(span(seconds))
	var wg sync.WaitGroup
	took, errs := make([][]time.Duration, len(calls)), make([]error, len(calls))
	for i, call := range calls {
		wg.Go(func() {
			for began := time.Now(); began.Before(to); {
				if errs[i] = call(); errs[i] != nil {
					return
				}
				now := time.Now()
				if now.After(from) && now.Before(to) {
					took[i] = append(took[i], now.Sub(began))
				}
				began = now
			}
		})
	}
	wg.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}
