package verbs

import (
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/release"
)

// places counts the places of a queue that are taken. Who posts and who polls have a word each, which nobody else
// writes, so that neither waits until all processors see his.
type places struct {
	taken uint32 // ever, it wraps: written by who posts, under the lock of that
	given uint32 // of them, those given back: written by who polls, under the lock of the CQ
}

// used is how many places are taken. It is less than 0 where a request that was refused had its place given back already:
// see give.
func (p *places) used() int32 {
	return int32(atomic.LoadUint32(&p.taken) - atomic.LoadUint32(&p.given))
}

// take takes n places, before the requests are published, so that their completions find them taken; -1 takes
// one back.
func (p *places) take(n int32) { release.Store32(&p.taken, p.taken+uint32(n)) }

// give gives n places back. Requests that fail complete without having been signaled:
// there may be fewer.
func (p *places) give(n int32) {
	if n = min(n, p.used()); n > 0 {
		release.Store32(&p.given, p.given+uint32(n))
	}
}

// keep gives all places back but n.
func (p *places) keep(n int32) {
	release.Store32(&p.given, atomic.LoadUint32(&p.taken)-uint32(n))
}
