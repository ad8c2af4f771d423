package monotonic

import (
	"bytes"
	"os"
	"runtime"
	"sync"
)

// counted reports whether the counter is one that can be used: the kernel keeps its own time by it, and on amd64 it ticks at
// one rate whatever the processor does.
var counted = sync.OnceValue(func() bool {
	source, _ := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	switch runtime.GOARCH {
	case "arm64":
		return string(source) == "arch_sys_counter\n"
	case "amd64":
		about, _ := os.ReadFile("/proc/cpuinfo")
		return string(source) == "tsc\n" && bytes.Contains(about, []byte(" constant_tsc ")) && bytes.Contains(about, []byte(" nonstop_tsc "))
	}
	return false
})
