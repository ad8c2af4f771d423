package driver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/vfmonitor"
)

const (
	// watchInterval is how often it is looked whether the counters of virtual functions are to be compared.
	watchInterval = time.Second
	// pagesInterval is how often it is told that a virtual function wants more memory than it may have, at most.
	pagesInterval = 10 * time.Second
	pageSize      = 4096
)

// functionWatch counts what the commands of virtual functions cost, and tells who makes too much work (WinOF-2 24.4, VF Monitoring).
type functionWatch struct {
	began time.Time
	mu    sync.Mutex
	of    map[uint32]*watchedPort // by adapters
	stop  chan struct{}
	done  chan struct{} // closed when nobody looks any more; nil: nobody has begun to
}

func newFunctionWatch() *functionWatch {
	return &functionWatch{began: time.Now(), of: map[uint32]*watchedPort{}, stop: make(chan struct{})}
}

// watchedPort are the virtual functions of an adapter.
type watchedPort struct {
	*vfmonitor.Monitor
	cfg vfmonitor.Config
}

// watchFunctions begins to look at what has been counted.
func (d *Driver) watchFunctions() {
	w := d.functionWatch
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				d.lookAtFunctions(w.now())
			}
		}
	}()
}

func (w *functionWatch) close() {
	if w.done == nil {
		return
	}
	close(w.stop)
	<-w.done
}

func (w *functionWatch) now() clock.Time { return clock.Time(time.Since(w.began)) }

// monitoring returns what adapter i's keys say of the monitoring; mlx4 adapters have no such keys, and count alone.
func (d *Driver) monitoring(i uint32) vfmonitor.Config {
	r := d.running[i]
	cfg := vfmonitor.Config{Enabled: d.now(r, "VfCpuMonEnable") != 0, Period: time.Duration(d.now(r, "VfCpuMonBatchPeriodSec")) * time.Second,
		MostUsage: int(d.now(r, "VfCpuMonFwCpuUsageMax")), MostErrors: d.now(r, "VfCpuMonErrors2FwMax")}
	if cfg.Check() != nil {
		return vfmonitor.Config{Period: time.Minute, MostUsage: 100, MostErrors: 1}
	}
	return cfg
}

// monitor makes the counters of adapter i's virtual functions follow its keys. The caller holds changes.
func (d *Driver) monitor(i uint32, now clock.Time) {
	cfg, w := d.monitoring(i), d.functionWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of[i]
	if p == nil {
		m, err := vfmonitor.New(now, cfg)
		if err != nil {
			return // monitoring has checked it
		}
		w.of[i] = &watchedPort{m, cfg}
		return
	}
	if p.cfg != cfg && p.Change(now, cfg) == nil {
		p.cfg = cfg
	}
}

// functionCommand counts a command of a virtual function.
func (d *Driver) functionCommand(function string, took time.Duration, err error) {
	owner, number, ok := d.functions.place(function)
	if !ok {
		return
	}
	w := d.functionWatch
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of[owner]
	if p == nil {
		return
	}
	if p.Spent(number, took); err != nil {
		p.Refused(number)
	}
}

// forget makes the counters of a virtual function those of the next one with its number.
func (w *functionWatch) forget(owner uint32, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.of[owner]; p != nil {
		p.Reset(number)
	}
}

// spent returns what the commands of a virtual function have cost, in microseconds, and how many of them were refused.
func (w *functionWatch) spent(owner uint32, number int) (usage, refused uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of[owner]
	if p == nil {
		return 0, 0
	}
	if list, err := p.Batch(number+1, 1, int(vfmonitor.FwCPUUsage)); err == nil {
		usage = list[0]
	}
	if list, err := p.Batch(number+1, 1, int(vfmonitor.Errors2FW)); err == nil {
		refused = list[0]
	}
	return usage, refused
}

// errNoFunctions says that there is nothing to read in a batch.
func errNoFunctions(q *api.ResourceDumpRequest) error {
	return fmt.Errorf("%w: segment 0x%x counts for virtual functions, and the adapter has none", api.ErrUnsupported, q.Segment)
}

// batch returns a counter of several virtual functions. The error names the field that is wrong.
func (w *functionWatch) batch(owner uint32, q *api.ResourceDumpRequest) (list []uint64, err error) {
	if q.NumOfObj2 != 0 {
		return nil, api.Wrong("num_of_obj2", fmt.Sprint(q.NumOfObj2), "none: segment 0x5000 has one counter at a time")
	}
	number := func(n *uint32) int {
		if n == nil {
			return 0
		}
		return int(*n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of[owner]
	if p == nil {
		return nil, errNoFunctions(q)
	}
	list, err = p.Batch(number(q.Index1), max(int(q.NumOfObj1), 1), number(q.Index2))
	var wrong *vfmonitor.FieldError
	if errors.As(err, &wrong) {
		name := map[string]string{"Index1": "index1", "Index2": "index2", "NumOfObj1": "num_of_obj1"}[wrong.Field]
		return nil, api.Wrong(name, strings.TrimSpace(fmt.Sprint(wrong.Value)), wrong.Want)
	}
	return list, err
}

// lookAtFunctions tells which virtual functions make too much work or want too much memory.
func (d *Driver) lookAtFunctions(now clock.Time) {
	for i := range d.running {
		list := d.functions.of(uint32(i))
		if len(list) == 0 {
			continue
		}
		for _, x := range d.functionWatch.warnings(uint32(i), now) {
			r := d.running[i]
			d.events.Raise(r.Generation, events.VFTooManyResources{Adapter: r.Name, VF: x.VF, Seconds: x.Seconds, FwCpuUsage: x.Usage,
				Errors2Fw: x.Errors})
		}
		for _, f := range list {
			d.lookAtPages(f, now)
		}
	}
}

func (w *functionWatch) warnings(owner uint32, now clock.Time) (list []vfmonitor.Warning) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.of[owner]; p != nil {
		list = p.Advance(now, nil)
	}
	return list
}

// lookAtPages tells that a virtual function has asked for more memory than MaxFWPagesUsagePerVF allows, if it has since it was told.
func (d *Driver) lookAtPages(f *virtualFunction, now clock.Time) {
	number, limit, more := d.wantedPages(f, now)
	if !more {
		return
	}
	r := d.running[f.cfg.Owner]
	d.events.Raise(r.Generation, events.VFTooManyPages{Adapter: r.Name, VF: number, Limit: limit / pageSize})
}

// wantedPages reports whether somebody is to be told that a virtual function wants more memory than its limit.
func (d *Driver) wantedPages(f *virtualFunction, now clock.Time) (number int, limit uint64, more bool) {
	d.functions.mu.Lock()
	defer d.functions.mu.Unlock()
	if f.quota == nil || d.attach == nil {
		return 0, 0, false
	}
	u, limit := d.attach.Ledger().UsageOf(f.quota, budget.Memory)
	if u.Refused == f.refused || now < f.pagesDue {
		return 0, 0, false
	}
	f.refused, f.pagesDue = u.Refused, now.Add(pagesInterval)
	return f.number, limit, true
}
