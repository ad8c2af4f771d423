package wait

import (
	"testing"
	"time"
)

// TestSleep: a wake-up ends the sleep, also one that comes before it; without one the time does. Each is done twice,
// so that no wake-up may be left over.
func TestSleep(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := NewParker()
	for name, s := range map[string]struct {
		sleep func(time.Duration)
		wake  func()
	}{
		"poller": {b.Sleep, b.Wake},
		"parker": {func(d time.Duration) { c.Sleep(d) }, c.Wake},
	} {
		for range 2 {
			s.wake()
			s.wake()
			s.sleep(-1)
			began := time.Now()
			s.sleep(5 * time.Millisecond)
			if took := time.Since(began); took < 5*time.Millisecond {
				t.Errorf("%s: woken after %v without a wake-up", name, took)
			}
			woken := make(chan bool)
			go func() {
				s.sleep(-1)
				close(woken)
			}()
			s.wake()
			<-woken
		}
	}
	c.Wake()
	if !c.Sleep(time.Hour) || c.Sleep(time.Millisecond) {
		t.Error("a parker does not distinguish a wake-up from the end of the time")
	}
}
