package osmtest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/mad"
)

// reportEach is after how many queries, or records of tables, a line is printed.
const reportEach = 5001

// flood sends queries as fast as they are answered.
func (t *test) flood() error {
	start := time.Now()
	fmt.Fprintf(t.env.Stdout, "-I- Start time is : %s [sec:usec]\n", clockOf(start))
	f := flooder{test: t, start: start, next: reportEach}
	switch t.o.stress {
	case 1:
		d := t.port.Device()
		r := mad.PortInfoRecord{EndPortLID: d.Port.LID, PortNum: d.Port.LocalPortNum}
		return f.singles("port_info queries (single mad)", mad.AttrPortInfoRecord, 3, r.Append(nil))
	case 4:
		p := mad.PathRecord{SGID: t.ownGID(), DGID: t.ownGID(), NumPath: 1}
		return f.singles("path_rec queries", mad.AttrPathRecord, mad.PathSGID|mad.PathDGID|mad.PathNumPath, p.Append(nil))
	case 2:
		return f.tables("large mixed queries (rmpp)", []question{{mad.AttrNodeRecord, 0, nil}, {mad.AttrPortInfoRecord, 0, nil},
			{mad.AttrLinkRecord, 0, nil}})
	}
	p := mad.PathRecord{SGID: t.ownGID(), NumPath: 1}
	return f.tables("Path Record queries (rmpp)", []question{{mad.AttrPathRecord, mad.PathSGID | mad.PathNumPath, p.Append(nil)}})
}

// question is a query of a flood.
type question struct {
	attr uint16
	mask uint64
	data []byte
}

type flooder struct {
	*test
	start            time.Time
	queries, records int
	next             int
}

func clockOf(t time.Time) string { return fmt.Sprintf("%d:%06d", t.Unix(), t.Nanosecond()/1000) }

// report prints how long it has taken.
func (f *flooder) report(what string, last bool) {
	now := time.Now()
	if !last {
		fmt.Fprintf(f.env.Stdout, "%d records, %d queries\n", f.records, f.queries)
	}
	took := now.Sub(f.start)
	fmt.Fprintf(f.env.Stdout, "-I- End time is : %s [sec:usec]\n", clockOf(now))
	fmt.Fprintf(f.env.Stdout, "-I- Querying %d %s took %04d:%06d [sec:usec]\n", f.queries, what, took/time.Second,
		took%time.Second/time.Microsecond)
}

// singles sends one query again and again, with a window of them in flight. Each answer triggers the next
// query at once.
func (f *flooder) singles(what string, attr uint16, mask uint64, data []byte) error {
	m := mad.NewSA(mad.MethodGet, attr, 0, 0)
	m.ComponentMask = mask
	copy(m.Data[:], data)
	request := [mad.Len]byte(m.Append(nil))
	timing := umad.Timing{Timeout: f.o.timeout, Tries: 3}
	var (
		mu    sync.Mutex
		begun int
		over  bool
		ended = make(chan error, 1)
		done  func(*umad.Datagram, error)
	)
	end := func(err error) {
		if !over {
			over = true
			ended <- err
		}
	}
	// answered handles an answer, and reports whether to send another query.
	answered := func(err error) (another bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			end(fmt.Errorf("query %d: %w", f.queries+1, err))
		}
		if over {
			return false
		}
		f.queries++
		f.records++
		switch {
		case f.queries == f.o.count:
			end(nil)
		case f.queries == f.next:
			f.report(what, false)
			f.next += reportEach
		}
		if another = begun < f.o.count; another {
			begun++
		}
		return another
	}
	done = func(d *umad.Datagram, err error) {
		if err == nil && (d.MAD[4] != 0 || d.MAD[5] != 0) {
			err = errors.New(mad.StatusText(uint16(d.MAD[4])<<8 | uint16(d.MAD[5])))
		}
		if answered(err) {
			f.port.Start(f.to, &request, timing, done)
		}
	}
	first := min(f.o.window, f.o.count)
	mu.Lock()
	begun = first
	mu.Unlock()
	for range first {
		f.port.Start(f.to, &request, timing, done)
	}
	select {
	case <-f.ctx.Done():
		mu.Lock()
		defer mu.Unlock()
		over = true
		return f.ctx.Err()
	case err := <-ended:
		if err == nil {
			f.report(what, true)
		}
		return err
	}
}

// tables requests tables, one after the other, until enough records have been received.
func (f *flooder) tables(what string, ask []question) error {
	for f.records < f.o.count {
		q := ask[f.queries%len(ask)]
		list, err := f.table(q.attr, q.mask, q.data, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("the table of attribute %#06x is empty", q.attr)
		}
		f.queries++
		f.records += len(list)
	}
	f.report(what, false)
	return nil
}
