// Package wakeup is how an engine that has nothing to do is left alone until it has: whoever drives it asks it no more, and the engine
// rings its Bell when that is no longer so.
package wakeup

// Bell is an engine's. The zero value belongs to one that is awake, and a nil Bell to one whose driver asks it all the time.
type Bell struct {
	woken  func()
	asleep bool
}

// New returns the bell of an engine that is awake. woken is called when it is rung while the engine sleeps, by whoever rings.
func New(woken func()) Bell { return Bell{woken: woken} }

// Sleep notes that the engine is asked no more until its bell rings.
func (b *Bell) Sleep() { b.asleep = true }

// Asleep reports whether it is.
func (b *Bell) Asleep() bool { return b.asleep }

// Ring says that there may be something to do that was not there before.
func (b *Bell) Ring() {
	if b != nil && b.asleep {
		b.wake()
	}
}

func (b *Bell) wake() {
	b.asleep = false
	b.woken()
}
