package reach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/memory"
)

const (
	// maxMovers and maxOwnMovers limit the threads that wait for memory, of all programs and of one: each
	// may be held for as long as the program wants, and the process has a limit for threads.
	maxMovers    = 256
	maxOwnMovers = 32
	// moverTime is how long a deferred copy may take before it fails with all behind it.
	moverTime = 5 * time.Second
)

var (
	errSlow    = fmt.Errorf("%w: it does not answer", memory.ErrGone)
	errCrowded = fmt.Errorf("%w: too many copies wait for memory that does not answer", memory.ErrGone)
)

// Movers counts threads that copy beside the loop. The zero value is ready to use.
type Movers struct{ n atomic.Int32 }

func (m *Movers) enter(most int32) bool {
	if m.n.Add(1) <= most {
		return true
	}
	m.n.Add(-1)
	return false
}

// begin runs f on a thread of its own, unless there are too many.
func (p *ProcessVM) begin(f func()) bool {
	if !p.own.enter(maxOwnMovers) {
		return false
	}
	if !p.movers.enter(maxMovers) {
		p.own.n.Add(-1)
		return false
	}
	go func() {
		f()
		p.movers.n.Add(-1)
		p.own.n.Add(-1)
	}()
	return true
}

// within runs f, which accesses the program's memory and nothing else. If it takes longer than d the error is
// errSlow, and f continues alone.
func (p *ProcessVM) within(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	if !p.begin(func() { done <- f() }) {
		return errCrowded
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return errSlow
	}
}

// job is a copy that a mover makes: into a buffer of its own or out of it, because the loop may no longer
// want the result when it comes.
type job struct {
	memory.Transfer
	staging []byte
	old     uint64
	err     error
	done    chan struct{} // closed at the end, for somebody who waits; nil: Finish reports it
	since   time.Time
	failed  bool // it was reported as failed already
}

func newJob(t *memory.Transfer) *job {
	j := &job{Transfer: *t, staging: make([]byte, len(t.Data))}
	if t.Kind == memory.CopyWrite {
		copy(j.staging, t.Data)
	}
	return j
}

// deliver hands over what was read. The caller is the loop.
func (j *job) deliver() {
	if j.Kind == memory.CopyRead && j.err == nil {
		copy(j.Data, j.staging)
	}
}

// mover makes the copies of one region that must not hold up the loop, in order.
type mover struct {
	vm   *ProcessVM
	time time.Duration // moverTime

	mu      sync.Mutex
	queue   []*job
	current *job
	running bool
	stuck   bool // the copy under way has taken too long: everything fails until it ends
	watched bool // a timer runs
	ended   []*job
}

// add queues a job, unless the error says why it was not accepted.
func (m *mover) add(j *job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stuck {
		return errSlow
	}
	if !m.running && !m.vm.begin(m.work) {
		return errCrowded
	}
	m.running = true
	m.queue = append(m.queue, j)
	if j.done == nil {
		j.since = time.Now()
		m.watch(m.time)
	}
	return nil
}

// watch looks after d whether the oldest copy has taken too long. The lock is held.
func (m *mover) watch(d time.Duration) {
	if !m.watched {
		m.watched = true
		time.AfterFunc(d, m.look)
	}
}

// look fails everything if the oldest copy has taken too long.
func (m *mover) look() {
	m.mu.Lock()
	m.watched = false
	var oldest *job
	for _, j := range append([]*job{m.current}, m.queue...) {
		if j != nil && j.done == nil && !j.failed {
			oldest = j
			break
		}
	}
	if oldest == nil {
		m.mu.Unlock()
		return
	}
	if left := m.time - time.Since(oldest.since); left > 0 {
		m.watch(left)
		m.mu.Unlock()
		return
	}
	m.stuck = m.current != nil
	m.fail(m.current)
	for _, j := range m.queue {
		m.fail(j)
	}
	m.queue = nil
	m.mu.Unlock()
	m.vm.news()
}

// fail reports a job as failed, though it may still be under way. The lock is held.
func (m *mover) fail(j *job) {
	if j == nil || j.done != nil || j.failed {
		return
	}
	j.failed = true
	m.ended = append(m.ended, &job{Transfer: j.Transfer, err: errSlow})
}

// work makes the copies until there are none.
func (m *mover) work() {
	for {
		m.mu.Lock()
		j := m.current
		m.current = nil
		if j != nil && j.done == nil && !j.failed {
			m.ended = append(m.ended, j)
		}
		m.stuck = false
		next := len(m.queue) > 0
		if next {
			m.current, m.queue = m.queue[0], m.queue[1:]
		}
		m.running = next
		now := m.current
		m.mu.Unlock()
		if j != nil && j.done == nil {
			m.vm.news()
		}
		if !next {
			return
		}
		now.old, now.err = m.vm.perform(now)
		if now.done != nil {
			close(now.done)
		}
	}
}

// free reports whether nothing is under way.
func (m *mover) free() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.running
}

// over takes a job that has ended to be reported.
func (m *mover) over(j *job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, j)
}

// idle reports whether nothing is under way and nothing waits to be reported.
func (m *mover) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.running && len(m.ended) == 0
}

// finish reports ended jobs, as memory.Deferred does.
func (m *mover) finish(out []memory.Finished) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(out), len(m.ended))
	for i, j := range m.ended[:n] {
		j.deliver()
		out[i] = memory.Finished{Tag: j.Tag, Old: j.old, Err: j.err}
	}
	m.ended = m.ended[n:]
	return n
}

// perform makes a copy.
func (p *ProcessVM) perform(j *job) (old uint64, err error) {
	b := j.staging
	switch j.Kind {
	case memory.CopyRead:
		return 0, p.move(unix.SYS_PROCESS_VM_READV, b, j.Addr)
	case memory.CopyWrite:
		if j.Last {
			return 0, p.writeLast(b, j.Addr)
		}
		return 0, p.move(unix.SYS_PROCESS_VM_WRITEV, b, j.Addr)
	case memory.CopyCompareSwap, memory.CopyFetchAdd:
		var v [8]byte
		if err := p.move(unix.SYS_PROCESS_VM_READV, v[:], j.Addr); err != nil {
			return 0, err
		}
		old = binary.NativeEndian.Uint64(v[:])
		now := j.Swap
		if j.Kind == memory.CopyFetchAdd {
			now += old
		} else if old != j.Compare {
			return old, nil
		}
		binary.NativeEndian.PutUint64(v[:], now)
		return old, p.move(unix.SYS_PROCESS_VM_WRITEV, v[:], j.Addr)
	}
	return 0, errors.ErrUnsupported
}
