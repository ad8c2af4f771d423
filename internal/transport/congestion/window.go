// Package congestion is the window of packets in flight to one destination: how it grows while packets arrive, and
// shrinks when they are lost. A receiver's buffer is finite, and nothing below slows a sender down.
package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// cutInterval is the time after which a window may be halved again although no
// whole window of packets has been acknowledged since.
const cutInterval = time.Millisecond

const (
	// Losses are counted over as many packets as the window holds, and lossSample at
	// least. Of them spared and one of sparedShare may have to be sent again before that
	// is a sign of congestion: single packets are lost whatever the window is, while a
	// receive buffer that overflows loses many at once.
	lossSample, spared, sparedShare = 256, 8, 32
	// crowdedShare is the part of a window that it shrinks by for a gap that had to wait
	// until another one of its QP was mended.
	crowdedShare = 64
)

// Window bounds the packets in flight to one destination. Its fields are for whoever sends to read; InFlight is his to keep.
type Window struct {
	Size     int           // packets that may be in flight
	Most     int           // the largest that it grows
	InFlight int           // those that were sent and have not come, as far as is known; Acked takes some out
	RTT      time.Duration // smoothed, from a request to its acknowledgement
	Passed   clock.Time    // when the youngest request was sent that was timed and acknowledged

	cfg       *Config
	threshold int // below it the window grows by a packet per packet acknowledged
	grown     int // acknowledged packets towards the next step of slow growth
	since     int // acknowledged packets since the last cut
	lastCut   clock.Time
	gone      int // packets to be sent again, of those sent since heard was 0
	heard     int // packets acknowledged meanwhile, up to a window of them
}

// New makes a window by a complete Config. near: the loop that sends serves the destination too.
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
		return // at its largest, or not what holds the senders back
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

// Part is how many packets one of several senders has at a time: half of a window that is as large as it may be, so that two take
// turns, and less of one that is short of room.
func (w *Window) Part() int {
	if w.Size >= w.Most {
		return w.Size / 2
	}
	return w.Size / 4
}

// Measured takes the times at which a request was sent and acknowledged.
func (w *Window) Measured(sent, acked clock.Time) {
	w.Passed = max(w.Passed, sent)
	d := acked.Sub(sent)
	if w.RTT == 0 {
		w.RTT = d
		return
	}
	w.RTT += (d - w.RTT) / 8
}

// Lost notes n packets to be sent again. Where they are many it halves the window, at most once for each window of acknowledged packets
// or each cutInterval: one burst of losses is one sign of congestion. It takes two
// losses within a window to go below the size that every window starts with, and
// growth up to there is fast: packets that are lost now and then, of which a smaller
// window loses as many, would otherwise keep it at a few packets.
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

// Crowded makes the window a little smaller because a QP found another gap in what it
// had in flight. A responder tells of one gap at a time, and each takes a round trip: a window with several gaps in
// it is too large.
func (w *Window) Crowded() {
	if w.Size > w.cfg.Start {
		w.Size -= max(w.Size/crowdedShare, 1)
		w.Size = max(w.Size, w.cfg.Start)
		w.threshold = max(w.Size, w.cfg.Start)
	}
}
