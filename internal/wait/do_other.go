//go:build !linux

package wait

import (
	"runtime"
	"time"
)

// Yield gives the processor to another goroutine.
func Yield() { runtime.Gosched() }

func nap(d time.Duration) { time.Sleep(d) }

func switches() (n int64, known bool) { return 0, false }

// realTime is false: what it concerns is Linux's sched_yield(2).
func realTime() bool { return false }
