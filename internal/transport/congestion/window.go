// Package congestion decides how many packets may be in flight to one destination, and from when on the next may leave.
// Controller is what transport asks and tells about the first, and Window its implementation: it goes by losses. The second is
// DCQCN: a ReactionPoint limits the rate of a queue pair by the notifications that its peer's NotificationPoint sends for
// packets that a switch has marked.
package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// cutInterval is the time after which a window may be halved again although no whole window of packets has
// been acknowledged since.
const cutInterval = time.Millisecond

const (
	// Losses are counted over as many packets as the window holds, and at least lossSample. Of these,
	// spared plus one in sparedShare may be lost before that is a sign of congestion: single packets are
	// lost whatever the window is, while a receive buffer that overflows loses many at once.
	lossSample, spared, sparedShare = 256, 8, 32
	// crowdedShare is the fraction by which a window shrinks for a gap that had to wait until another one
	// of its QP was mended.
	crowdedShare = 64
)

// Window is a Controller that counts packets: it grows while they arrive, and shrinks when they are lost. A receiver's
// buffer is finite, and nothing below slows a sender down.
type Window struct {
	size      int // packets that may be in flight
	most      int // its maximum size
	cfg       *Config
	threshold int // below it the window grows by one packet per acknowledged packet
	grown     int // acknowledged packets towards the next step of slow growth
	since     int // acknowledged packets since the last cut
	lastCut   clock.Time
	gone      int // packets to be retransmitted since heard was 0
	heard     int // packets acknowledged meanwhile, up to a window of them
}

var _ Controller = (*Window)(nil)

// NewWindow returns a window for a complete Config. near: the sending loop also serves the destination.
func NewWindow(near bool, cfg *Config) *Window {
	most := cfg.Max
	if near {
		most = cfg.Near
	}
	return &Window{cfg: cfg, most: most, size: cfg.Start, threshold: most, since: cfg.Start}
}

// Limit implements Controller.
func (w *Window) Limit() (now, most int) { return w.size, w.most }

// Acked implements Controller: the window grows while the senders make full use of it.
func (w *Window) Acked(_ clock.Time, n, inFlight int) int {
	w.since += n
	if w.heard += n; w.heard >= max(w.size, lossSample) {
		w.gone, w.heard = 0, 0
	}
	if w.size >= w.most || inFlight < w.size/2 {
		return w.size // at its maximum, or not what limits the senders
	}
	if w.size < w.threshold {
		w.size = min(w.size+n, w.most)
		return w.size
	}
	w.grown += n
	if w.grown >= w.size {
		w.grown = 0
		w.size++
	}
	return w.size
}

// Lost implements Controller. If the packets are many it halves the window, at most once per
// window of acknowledged packets or per cutInterval: one burst of losses is one sign of congestion. It
// takes two losses within a window to go below the initial size, and growth up to there is fast: otherwise
// sporadic losses, which a smaller window does not avoid, would keep it at a few packets.
func (w *Window) Lost(now clock.Time, n int) int {
	if w.gone += n; w.gone <= spared+w.heard/sparedShare {
		return w.size
	}
	w.gone, w.heard = 0, 0
	again, least := w.since < w.size, w.cfg.Min
	if again && now.Sub(w.lastCut) < cutInterval {
		return w.size
	}
	if !again {
		least = min(w.size, w.cfg.Start)
	}
	w.size = max(w.size/2, least)
	w.threshold = max(w.size, w.cfg.Start)
	w.grown, w.since, w.lastCut = 0, 0, now
	return w.size
}

// Crowded implements Controller: the window shrinks a little. A responder reports one gap at a time, and each takes a
// round trip: a window with several gaps in it is too large.
func (w *Window) Crowded() int {
	if w.size > w.cfg.Start {
		w.size -= max(w.size/crowdedShare, 1)
		w.size = max(w.size, w.cfg.Start)
		w.threshold = max(w.size, w.cfg.Start)
	}
	return w.size
}
