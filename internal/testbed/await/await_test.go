package await

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestScale(t *testing.T) {
	for factor, want := range map[string]time.Duration{"": base, "1": base, "2.5": base * 5 / 2, "0.1": base / 10} {
		if got, err := scale(factor); got != want || err != nil {
			t.Errorf("factor %q: %v, %v; want %v", factor, got, err, want)
		}
	}
	for _, bad := range []string{"0", "-1", "x", "1e9", "NaN", "10s"} {
		if _, err := scale(bad); err == nil || !strings.Contains(err.Error(), "allowed: a factor from 0.1 to 100") {
			t.Errorf("factor %q: %v", bad, err)
		}
	}
}

func TestUntil_ReturnsSoonAfterTheConditionHolds(t *testing.T) {
	for _, after := range []time.Duration{0, time.Microsecond, time.Millisecond, time.Second, Limit - time.Second} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			if !Until(func() bool { return time.Since(begin) >= after }) {
				t.Errorf("what holds after %v did not within %v", after, Limit)
			}
			if late := time.Since(begin) - after; late > max(after, firstPause) || late > lastPause {
				t.Errorf("what holds after %v was seen %v later", after, late)
			}
		})
	}
}

func TestUntil_GivesUpAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, looks := time.Now(), 0
		if Until(func() bool { looks++; return false }) {
			t.Error("a condition that never holds was reached")
		}
		if took := time.Since(begin); took < Limit || took > Limit+2*lastPause {
			t.Errorf("gave up after %v, want %v", took, Limit)
		}
		if most := int(Limit/lastPause) + 20; looks > most {
			t.Errorf("looked %d times, want at most %d", looks, most)
		}
	})
}

// A condition that comes to hold while the waiting thread has no processor counts, however late that is.
func TestUntil_LooksOnceMoreAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		if !Until(func() bool {
			if looks++; looks == 2 {
				time.Sleep(2 * Limit)
				return false
			}
			return looks > 2
		}) {
			t.Error("gave up although the condition holds")
		}
	})
}

// ended is a test that notes that it was ended.
type ended struct {
	testing.TB
	text string
}

func (e *ended) Helper()                      {}
func (e *ended) Fatalf(f string, args ...any) { e.text = f }

func TestEventually_EndsTheTestOnlyWhenItIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &ended{}
		if Eventually(e, "now", func() bool { return true }); e.text != "" {
			t.Error("ended although the condition holds")
		}
		if Eventually(e, "never", func() bool { return false }); e.text == "" {
			t.Error("not ended although the condition never held")
		}
	})
}
