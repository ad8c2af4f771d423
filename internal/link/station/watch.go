package station

import (
	"slices"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/link"
)

// mostWatched is how many of the link's own frames are kept until somebody looks; more are not seen.
const mostWatched = 256

// watch keeps the link's own frames for captures.
type watch struct {
	on     atomic.Bool
	handed atomic.Uint64
	frames []link.OwnFrame // guarded by the Set's mu
	shown  []link.OwnFrame // those handed out
	ahead  uint64          // of handed: frames that will be handed up, in front of what is seen now
}

// Watch implements link.Stations.
func (s *Set) Watch(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.on.Store(on)
	s.watch.frames, s.watch.shown = nil, nil
}

// Watched implements link.Stations.
func (s *Set) Watched() (own []link.OwnFrame, handed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	w.frames, w.shown = w.shown[:0], w.frames
	return w.shown, w.handed.Load()
}

// see keeps a copy of a frame of the link's own, if somebody watches. The caller holds mu.
func (s *Set) see(f []byte, sent bool) {
	w := &s.watch
	if !w.on.Load() || len(w.frames) == mostWatched {
		return
	}
	w.frames = append(w.frames, link.OwnFrame{Data: slices.Clone(f), Sent: sent, Handed: w.handed.Load() + w.ahead})
}

// count counts frames that are handed up.
func (w *watch) count(n int) {
	if w.on.Load() {
		w.handed.Add(uint64(n))
	}
}
