package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
)

// output is where the suites' output goes.
var output io.Writer = os.Stdout

// runAll runs the suites, jobs at a time, and those that need the machine for themselves behind all others. It returns the packages that
// failed, in the order in which they did; an error is one to run go test at all.
func runAll(suites []suite, jobs int, run func(s suite, out io.Writer) error) (failed []string, err error) {
	var mu sync.Mutex // of all below, and of output
	end := func(s suite, e error) {
		if exit := (*exec.ExitError)(nil); errors.As(e, &exit) {
			failed = append(failed, s.Package)
		} else {
			err = cmp.Or(err, e)
		}
	}
	if jobs > 1 {
		var beside []suite
		for _, s := range suites {
			if !s.alone {
				beside = append(beside, s)
			}
		}
		suites = slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return !s.alone })
		slices.SortStableFunc(beside, func(a, b suite) int { return cmp.Compare(b.size, a.size) })
		next := make(chan suite, len(beside))
		for _, s := range beside {
			next <- s
		}
		close(next)
		var all sync.WaitGroup
		for range jobs {
			all.Go(func() {
				for s := range next {
					var text bytes.Buffer
					e := run(s, &text)
					mu.Lock()
					_, _ = output.Write(text.Bytes())
					end(s, e)
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	for _, s := range suites {
		if err != nil {
			return nil, err
		}
		end(s, run(s, output))
	}
	return failed, err
}
