// Package congestion implements the window of packets in flight to one destination: how it grows while
// packets arrive, and shrinks when they are lost. A receiver's buffer is finite, and nothing below slows a
// sender down.
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
	// A window has few senders if there are fewSenders packets of it or more for each.
	fewSenders = 16
	// crowdedShare is the fraction by which a window shrinks for a gap that had to wait until another one
	// of its QP was mended.
	crowdedShare = 64
)

// Window limits the packets in flight to one destination. Senders may read its fields; InFlight they must
// maintain.
type Window struct {
	Size     int           // packets that may be in flight
	Most     int           // its maximum size
	InFlight int           // packets sent that have not arrived, as far as is known; Acked subtracts
	RTT      time.Duration // smoothed, from a request to its acknowledgement
	Passed   clock.Time    // when the most recent request that was timed and acknowledged was sent

	cfg       *Config
	threshold int // below it the window grows by one packet per acknowledged packet
	grown     int // acknowledged packets towards the next step of slow growth
	since     int // acknowledged packets since the last cut
	lastCut   clock.Time
	gone      int // packets to be retransmitted since heard was 0
	heard     int // packets acknowledged meanwhile, up to a window of them
}

// New returns a window for a complete Config. near: the sending loop also serves the destination.
func New(near bool, cfg *Config) Window {
	most := cfg.Max
	if near {
		most = cfg.Near
	}
	return Window{cfg: cfg, Most: most, Size: cfg.Start, threshold: most, since: cfg.Start}
}

// Acked takes n packets out of flight and grows the window.
func (w *Window) Acked(n int) {
	used := w.InFlight
	w.InFlight -= n
	w.since += n
	if w.heard += n; w.heard >= max(w.Size, lossSample) {
		w.gone, w.heard = 0, 0
	}
	if w.Size >= w.Most || used < w.Size/2 {
		return // at its maximum, or not what limits the senders
	}
	if w.Size < w.threshold {
		w.Size = min(w.Size+n, w.Most)
		return
	}
	w.grown += n
	if w.grown >= w.Size {
		w.grown = 0
		w.Size++
	}
}

// Part returns how many packets one of several senders has at a time: half of a window of maximum size, so
// that two take turns, and a quarter of a smaller one. Few senders have more of that, up to a whole burst,
// if it leaves room for a burst of another: each burst, and the acknowledgement that its sender then needs,
// costs as much as a dozen packets. A sender by itself has nothing else to go on with while it waits.
func (w *Window) Part(senders, burst int) int {
	if w.Size >= w.Most {
		return w.Size / 2
	}
	part := w.Size / 4
	if senders > 1 && senders*fewSenders <= w.Size {
		part = max(part, min(w.Size-burst, burst))
	}
	return part
}

// Measured records the times at which a request was sent and acknowledged.
func (w *Window) Measured(sent, acked clock.Time) {
	w.Passed = max(w.Passed, sent)
	d := acked.Sub(sent)
	if w.RTT == 0 {
		w.RTT = d
		return
	}
	w.RTT += (d - w.RTT) / 8
}

// Lost records n packets to be retransmitted. If they are many it halves the window, at most once per
// window of acknowledged packets or per cutInterval: one burst of losses is one sign of congestion. It
// takes two losses within a window to go below the initial size, and growth up to there is fast: otherwise
// sporadic losses, which a smaller window does not avoid, would keep it at a few packets.
func (w *Window) Lost(now clock.Time, n int) {
	if w.gone += n; w.gone <= spared+w.heard/sparedShare {
		return
	}
	w.gone, w.heard = 0, 0
	again, least := w.since < w.Size, w.cfg.Min
	if again && now.Sub(w.lastCut) < cutInterval {
		return
	}
	if !again {
		least = min(w.Size, w.cfg.Start)
	}
	w.Size = max(w.Size/2, least)
	w.threshold = max(w.Size, w.cfg.Start)
	w.grown, w.since, w.lastCut = 0, 0, now
}

// Crowded shrinks the window a little because a QP found another gap in its packets in flight. A responder
// reports one gap at a time, and each takes a round trip: a window with several gaps in it is too large.
func (w *Window) Crowded() {
	if w.Size > w.cfg.Start {
		w.Size -= max(w.Size/crowdedShare, 1)
		w.Size = max(w.Size, w.cfg.Start)
		w.threshold = max(w.Size, w.cfg.Start)
	}
}
