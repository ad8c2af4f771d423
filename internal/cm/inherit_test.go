package cm

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestInherit: what an engine that is given up has not got confirmed of the ends of its connections is repeated by the one that takes its
// place, under the same ids, until the peer has confirmed it; then nothing is left of it. What is confirmed, or has not begun, is not.
func TestInherit(t *testing.T) {
	p, id := established(t, 17, 15)
	old := p.b.e
	next, err := New(Config{GUID: 0xb, Rand: rand.New(rand.NewPCG(5, 5)).Uint64})
	if err != nil {
		t.Fatal(err)
	}
	next.Inherit(p.now, old)
	if s := next.left(); s != "" {
		t.Errorf("of a connection that has not ended the new engine has %s", s)
	}
	if err := old.Destroy(p.now, id); err != nil {
		t.Fatal(err)
	}
	p.wire = nil
	p.collect() // the only request of the old engine
	p.wire = nil
	p.b.e = next
	next.Inherit(p.now, old)
	p.collect()
	p.wire = nil // the first one of the new engine is lost, too
	for limit := p.now.Add(time.Minute); p.now < limit && next.Deadline() <= limit && p.a.e.counters.Active > 0; {
		p.advance(p.deadline())
		p.flow()
	}
	disconnected := 0
	for _, e := range p.a.events() {
		if e.Type == EventDisconnected {
			disconnected++
		}
	}
	if disconnected != 1 {
		t.Errorf("the peer was told %d times of the end, want once", disconnected)
	}
	for next.left() != "" && next.Deadline() <= p.now.Add(time.Minute) {
		p.advance(p.deadline())
	}
	if s := next.left(); s != "" {
		t.Errorf("the new engine has %s", s)
	}
	for _, e := range p.b.events() {
		if e.Type != EventTimewaitExit {
			t.Errorf("unexpected %v", e)
		}
	}
	again, err := New(Config{GUID: 0xb, Rand: rand.New(rand.NewPCG(6, 6)).Uint64})
	if err != nil {
		t.Fatal(err)
	}
	again.Inherit(p.now, next)
	if s := again.left(); s != "" {
		t.Errorf("of a connection whose end is confirmed a third engine has %s", s)
	}
}
