// Package await says how long a test waits for what must come, and waits for it. Nothing that works takes that long:
// a test that waited in vain has failed, and one that did not wait long enough would have failed for no fault of the
// code. What must not come cannot be waited for; such a test waits for something that comes after it would have.
package await

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Variable names the environment variable that Limit is multiplied by, for machines that are slow or busy.
const Variable = "SOFTVPI_TEST_PATIENCE"

// base is far above what anything in the tests takes on a machine that is busy with other things as well.
const base = time.Minute

// Limit is how long tests wait for anything: a minute, times what the environment says.
var Limit = mustScale(os.Getenv(Variable))

func mustScale(factor string) time.Duration {
	d, err := scale(factor)
	if err != nil {
		panic(err)
	}
	return d
}

func scale(factor string) (time.Duration, error) {
	if factor == "" {
		return base, nil
	}
	f, err := strconv.ParseFloat(factor, 64)
	if err != nil || !(f >= 0.1 && f <= 100) {
		return 0, fmt.Errorf("%s is %q; allowed: a factor from 0.1 to 100", Variable, factor)
	}
	return time.Duration(f * float64(base)), nil
}

// The condition is looked at again at once, and then ever less often.
const (
	firstPause = 20 * time.Microsecond
	lastPause  = 20 * time.Millisecond
)

// Eventually waits until is returns true, and ends the test if it does not within Limit. what says in the failure what
// was waited for. It has to be called by the test's goroutine; others use Until.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Until(is) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

// Until waits until is returns true, and says whether it did within Limit. It serves tests that tell in the failure
// what they saw instead.
func Until(is func() bool) bool { return until(is, Limit) }

func until(is func() bool, limit time.Duration) bool {
	end := time.Now().Add(limit)
	for pause := firstPause; !is(); pause = min(2*pause, lastPause) {
		if time.Now().After(end) {
			return is() // this thread may have been without a processor since it last looked
		}
		time.Sleep(pause)
	}
	return true
}
