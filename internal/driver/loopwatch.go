package driver

import (
	"fmt"
	"time"
)

// loopPatience is how long the loop may not answer before the driver ends itself; loopLooks is how often it is looked at meanwhile. Looks
// count, not time: a process that was stopped, or a machine that was asleep, has missed none.
const (
	loopPatience = time.Minute
	loopLooks    = 12
)

// loopWatch ends the process of a driver whose loop has stopped for good: a turn that never ends holds the lock that everything needs, and
// cannot be taken from whoever has it. The process dies of a panic, so that the next driver finds the tracebacks of all goroutines, and
// whatever runs the driver starts it again.
type loopWatch struct {
	every      time.Duration
	looks      int           // without an answer
	answered   func()        // is told of each answer
	stop, done chan struct{} // nil: nobody watches
}

// watchLoop begins to watch, if the process is the driver's own.
func (d *Driver) watchLoop(o *Options) {
	if !d.own {
		return
	}
	patience := o.LoopPatience
	if patience <= 0 {
		patience = loopPatience
	}
	w := &d.loop
	w.pace(patience, o.Within)
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	var s Status // written before the answer, and read after it
	w.answered = func() {
		if o.Answered != nil {
			o.Answered(s)
		}
	}
	go w.run(func() { s = d.Overview() })
}

// pace sets how often to look: often enough for an answer within so long, which takes two looks, and once more to spare.
func (w *loopWatch) pace(patience, within time.Duration) {
	w.every, w.looks = patience/loopLooks, loopLooks
	if most := within / 4; most > 0 && most < w.every {
		w.every, w.looks = most, int(patience/most)
	}
}

func (w *loopWatch) close() {
	if w.stop != nil {
		close(w.stop)
		<-w.done
		w.stop = nil
	}
}

// run asks the loop something at a look, and looks whether it has answered at the next ones.
func (w *loopWatch) run(ask func()) {
	defer close(w.done)
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	var answer chan struct{}
	for missed := 0; ; {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		if answer == nil {
			answer, missed = asked(ask), 0
			continue
		}
		select {
		case <-answer:
			answer = nil
			w.answered()
		default:
			if missed++; missed >= w.looks {
				panic(fmt.Sprintf("the loop of the driver has not answered at %d looks, one each %v: a turn does not end", missed, w.every))
			}
		}
	}
}

// asked asks beside the caller, and returns what is closed when there is an answer.
func asked(ask func()) chan struct{} {
	answer := make(chan struct{})
	go func() {
		defer close(answer)
		ask()
	}()
	return answer
}
