package bench

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// processorTime returns the processor time of all current threads of a process, with the kernel's
// nanosecond resolution.
func processorTime(pid string) (time.Duration, error) {
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, t := range threads {
		b, err := os.ReadFile("/proc/" + pid + "/task/" + t.Name() + "/schedstat")
		if err != nil {
			continue // the thread has ended
		}
		var ran int64
		if _, err := fmt.Sscan(string(b), &ran); err != nil {
			return 0, fmt.Errorf("/proc/%s: schedstat: %w", pid, err)
		}
		total += time.Duration(ran)
	}
	return total, nil
}

// memoryOf returns the bytes of memory of processes; shared memory is counted once (proportional set
// size).
func memoryOf(pids ...string) (float64, error) {
	var total float64
	for _, pid := range pids {
		b, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if err != nil {
			return 0, err
		}
		_, rest, ok := strings.Cut(string(b), "\nPss:")
		var kb float64
		if _, err := fmt.Sscan(rest, &kb); !ok || err != nil {
			return 0, fmt.Errorf("/proc/%s/smaps_rollup has no Pss", pid)
		}
		total += kb * 1024
	}
	return total, nil
}
