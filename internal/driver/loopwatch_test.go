package driver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestLoopWatch_Pace: a driver ends itself after its own patience, however often a service manager wants to hear of it, and looks often
// enough for that: an answer takes two looks.
func TestLoopWatch_Pace(t *testing.T) {
	for _, x := range []struct {
		patience, within, every time.Duration
		looks                   int
	}{
		{time.Minute, 0, 5 * time.Second, 12},
		{time.Minute, 90 * time.Second, 5 * time.Second, 12},
		{time.Minute, 8 * time.Second, 2 * time.Second, 30},
		{6 * time.Second, 400 * time.Millisecond, 100 * time.Millisecond, 60},
	} {
		var w loopWatch
		if w.pace(x.patience, x.within); w.every != x.every || w.looks != x.looks {
			t.Errorf("patience %v within %v: every %v, %d looks; want %v, %d", x.patience, x.within, w.every, w.looks, x.every, x.looks)
		}
	}
}

// TestLoopWatch_TellsOfAnswersOnly: whoever is told that the loop answers is told so after answers, and never instead of one.
func TestLoopWatch_TellsOfAnswersOnly(t *testing.T) {
	var asks, answers, told atomic.Int64
	silent := make(chan struct{})
	w := loopWatch{every: time.Millisecond, looks: 1 << 30, stop: make(chan struct{}), done: make(chan struct{})}
	w.answered = func() {
		if told.Add(1) > answers.Load() {
			t.Error("told of an answer that has not come")
		}
	}
	go w.run(func() {
		if asks.Add(1) > 3 {
			<-silent
		}
		answers.Add(1)
	})
	await.Eventually(t, "a question without an answer", func() bool { return asks.Load() == 4 })
	if n := told.Load(); n != 3 {
		t.Errorf("told of %d answers, want 3", n)
	}
	close(silent)
	await.Eventually(t, "an answer again", func() bool { return told.Load() > 3 })
	w.close()
}
