package wait

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestContention_YieldsAfterEachLookWhileYieldsAreUsed: a poller that is alone yields after as many looks as its policy
// says; while its yields are used, after each; and again as seldom once contended yields in a row were not.
func TestContention_YieldsAfterEachLookWhileYieldsAreUsed(t *testing.T) {
	var c Contention
	p := Of(AttachedPoll)
	yields := func() (n int) {
		for i := uint32(1); i <= p.Looks; i++ {
			if c.Due(&p, i) {
				n++
			}
		}
		return n
	}
	for _, s := range []struct {
		name string
		used bool
		n    int
		want int
	}{
		{"alone", false, 0, 1},
		{"after a used yield", true, 1, int(p.Looks)},
		{"after some unused ones", false, contended - 1, int(p.Looks)},
		{"after enough unused ones", false, 1, 1},
	} {
		for range s.n {
			c.Yielded(s.used)
		}
		if n := yields(); n != s.want {
			t.Errorf("%s: %d yields in %d looks, want %d", s.name, n, p.Looks, s.want)
		}
	}
}

// TestContention_LooksArePowersOfTwo: of the policies that are used with it.
func TestContention_LooksArePowersOfTwo(t *testing.T) {
	for _, k := range []Kind{AttachedPoll, AttachedWait} {
		if n := Of(k).Looks; n == 0 || n&(n-1) != 0 {
			t.Errorf("kind %d: %d looks", k, n)
		}
	}
}

// TestContention_NapsSeldomerWhileYieldsAreUsed: used yields earn a nap; unused ones clear what was earned. The gap between
// naps doubles up to its limit, and starts again after a long rest.
func TestContention_NapsSeldomerWhileYieldsAreUsed(t *testing.T) {
	var c Contention
	p := Of(AttachedPoll)
	tire := func(n int, used bool) {
		for range n {
			c.Yielded(used)
		}
	}
	now, gap := clock.Time(time.Hour), time.Duration(0)
	if tire(2*weary, false); c.Next(&p, 1, now) == Nap {
		t.Error("naps though its yields are not used")
	}
	for i := range 20 {
		tire(weary-1, true)
		if c.Next(&p, 1, now.Add(gap)) == Nap {
			t.Fatalf("nap %d: before it is weary", i)
		}
		tire(1, true)
		if gap > 0 && c.Next(&p, 1, now.Add(gap-1)) == Nap {
			t.Fatalf("nap %d: sooner than %v after the one before", i, gap)
		}
		now = now.Add(gap)
		if step := c.Next(&p, 1, now); step != Nap {
			t.Fatalf("nap %d: %v, %v after the one before", i, step, gap)
		}
		gap = min(max(2*gap, napGap), napGapMost)
	}
	tire(weary, true)
	now = now.Add(napRest + 1)
	if c.Next(&p, 1, now) != Nap {
		t.Fatal("no nap after a long rest")
	}
	tire(weary, true)
	if c.Next(&p, 1, now.Add(napGap)) != Nap {
		t.Errorf("the gap after a long rest is longer than %v", napGap)
	}
	tire(weary, true)
	tire(contended, false)
	if c.Next(&p, 1, now.Add(time.Hour)) == Nap {
		t.Error("naps once alone")
	}
}

// TestContention_YieldsToLowerPrioritiesAfterLong: only a poller that has looked in vain for long asks.
func TestContention_YieldsToLowerPrioritiesAfterLong(t *testing.T) {
	var c Contention
	p := Of(AttachedPoll)
	for n, want := range map[uint32]Step{
		p.Looks: YieldThread, p.Looks * p.Goroutines: YieldAll, lowerLooks - p.Looks: YieldThread, lowerLooks: YieldLower,
		1 << 31: YieldLower,
	} {
		if got := c.Next(&p, n, 0); got != want {
			t.Errorf("look %d: %v, want %v", n, got, want)
		}
	}
}
