package verbs

import (
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/cpu/release"
)

// places counts the occupied places of a queue. The posting and the polling side each write a word of
// their own, so that no update needs a locked instruction.
type places struct {
	taken uint32 // total ever taken, wraps: written when posting, under the queue's lock
	given uint32 // total ever given back, wraps: written when polling, under the CQ's lock
}

// used returns how many places are occupied. It is negative if the place of a refused request had already
// been given back: see give.
func (p *places) used() int32 {
	return int32(atomic.LoadUint32(&p.taken) - atomic.LoadUint32(&p.given))
}

// take takes n places, before the requests are published, so that their completions find them taken; -1
// returns one.
func (p *places) take(n int32) { release.Store32(&p.taken, p.taken+uint32(n)) }

// give returns up to n places: requests that fail complete even if unsignaled, so fewer than n may be
// taken.
func (p *places) give(n int32) {
	if n = min(n, p.used()); n > 0 {
		release.Store32(&p.given, p.given+uint32(n))
	}
}

// keep gives back all places but n.
func (p *places) keep(n int32) {
	release.Store32(&p.given, atomic.LoadUint32(&p.taken)-uint32(n))
}
