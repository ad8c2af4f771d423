package device

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// idleBytes is what an idle queue pair may take besides its rings.
const idleBytes = 2 << 10

// TestIdleQueuePairs: an adapter holds as many idle queue pairs as its limit says (512K with SOFTVPI_SCALE=full).
// Each has a number of its own and takes little more than its rings, one more is refused, and their memory is given
// back when they are destroyed.
func TestIdleQueuePairs(t *testing.T) {
	n := uint32(16 << 10)
	if os.Getenv("SOFTVPI_SCALE") == "full" {
		n = 512 << 10
	}
	p := memoryProgram(t, AdapterConfig{Limits: Limits{QP: n}})
	cq := p.cq(16)
	r := command.CreateQP{PD: p.pd, SendCQ: cq.q.Handle, RecvCQ: cq.q.Handle, Type: command.RC, SendDepth: 1, RecvDepth: 1, SendSGE: 1,
		RecvSGE: 1}
	before := heap()
	_, arenas := p.c.arena.Used()
	numbers := make(map[uint32]struct{}, n)
	handles := make([]command.Handle, 0, n)
	own := heap() - before
	start := time.Now()
	for range n {
		q, err := p.c.CreateQP(bg, r)
		if err != nil {
			t.Fatalf("after %d: %v", len(handles), err)
		}
		numbers[q.Number] = struct{}{}
		handles = append(handles, q.Handle)
	}
	took := time.Since(start)
	if len(numbers) != int(n) {
		t.Errorf("%d numbers for %d queue pairs", len(numbers), n)
	}
	_, err := p.c.CreateQP(bg, r)
	wantCode(t, err, command.Exhausted)
	_, now := p.c.arena.Used()
	grown := heap() - before - own
	each := (int64(grown) - int64(now-arenas)) / int64(n)
	t.Logf("%d queue pairs: %d bytes each and %d of rings, %v to make one", n, each, uint64(now-arenas)/uint64(n), took/time.Duration(n))
	if each > idleBytes {
		t.Errorf("an idle queue pair takes %d bytes besides its rings, want at most %d", each, idleBytes)
	}
	for _, h := range handles {
		p.check(p.c.Destroy(bg, command.KindQP, h))
	}
	if used, _ := p.c.arena.Used(); p.host.Snapshot().Adapters[p.adapter].Objects.QP != 0 || used > 1<<20 {
		t.Errorf("%d bytes of rings are in use after all queue pairs were destroyed", used)
	}
	runtime.KeepAlive(numbers)
}

// heap returns the bytes of the Go heap in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
