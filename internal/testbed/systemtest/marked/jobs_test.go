package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestApart_TestsThatNeedTheMachine(t *testing.T) {
	all := []string{"TestA", "TestB"}
	for _, c := range []struct {
		s     suite
		alone []string
		want  []suite
	}{
		{suite{Package: "m", Tests: all, size: 2}, nil, []suite{{Package: "m", Tests: all, size: 2}}},
		{suite{Package: "m", Tests: all, size: 2}, all[:1],
			[]suite{{Package: "m", Tests: all[1:], size: 1}, {Package: "m", Tests: all[:1], alone: true, size: 1}}},
		{suite{Package: "m", Tests: all, size: 2}, all, []suite{{Package: "m", Tests: all, alone: true, size: 2}}},
		{suite{Package: "m/test/x", size: 2}, all[1:],
			[]suite{{Package: "m/test/x", Not: all[1:], size: 1}, {Package: "m/test/x", Tests: all[1:], alone: true, size: 1}}},
		{suite{Package: "m/test/x", size: 2}, all, []suite{{Package: "m/test/x", Tests: all, alone: true, size: 2}}},
	} {
		if got := c.s.apart(c.alone); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v without %q: %+v, want %+v", c.s, c.alone, got, c.want)
		}
	}
}

// TestRunAll: every suite runs once, no more than jobs at the same time, with most tests first, and one that needs the machine has it; what
// a suite prints stays together, and all that failed is named.
func TestRunAll(t *testing.T) {
	suites := []suite{{Package: "small", size: 1}, {Package: "selfish", size: 9, alone: true}, {Package: "large", size: 5},
		{Package: "middle", size: 3}, {Package: "selfish too", size: 1, alone: true}, {Package: "tiny"}}
	for _, jobs := range []int{1, 2, 5, 9} {
		synctest.Test(t, func(t *testing.T) {
			var text bytes.Buffer
			output = &text
			var mu sync.Mutex
			var began, running []string
			most := 0
			failed, err := runAll(suites, jobs, func(s suite, out io.Writer) error {
				mu.Lock()
				began, running = append(began, s.Package), append(running, s.Package)
				most = max(most, len(running))
				if s.alone && jobs > 1 && len(running) > 1 {
					t.Errorf("%d jobs: %q run at the same time", jobs, running)
				}
				mu.Unlock()
				for range 3 {
					_, _ = io.WriteString(out, s.Package+",")
					time.Sleep(time.Duration(1+s.size) * time.Second)
				}
				mu.Lock()
				running = slices.DeleteFunc(running, func(name string) bool { return name == s.Package })
				mu.Unlock()
				if s.Package == "large" {
					return &exec.ExitError{}
				}
				return nil
			})
			if err != nil || !slices.Equal(failed, []string{"large"}) || len(began) != len(suites) || most != min(jobs, 4) {
				t.Errorf("%d jobs: %q failed, %v, %q ran, up to %d at a time", jobs, failed, err, began, most)
			}
			if jobs == 2 && began[len(began)-1] != "selfish too" || jobs == 1 && began[0] != "small" {
				t.Errorf("%d jobs: %q ran", jobs, began)
			}
			for _, s := range suites {
				if jobs > 1 && strings.Count(text.String(), strings.Repeat(s.Package+",", 3)) == 0 {
					t.Errorf("%d jobs: %s", jobs, text.String())
				}
			}
		})
	}
	output = io.Discard
	none := errors.New("no go")
	if _, err := runAll(suites, 2, func(suite, io.Writer) error { return none }); !errors.Is(err, none) {
		t.Errorf("without a go tool: %v", err)
	}
}
