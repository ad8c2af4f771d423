package hugepages

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// stretch is memory between two addresses.
type stretch struct{ from, to uint64 }

// heapOf returns what is in use of the mappings that the memory at an address is part of, from /proc/PID/maps: Go's runtime reserves
// arenas for its heap one after the other, and makes them usable from below, so that nothing is between them.
func heapOf(maps io.Reader, at uint64) []stretch {
	var run []stretch
	var end uint64
	holds := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		x, usable, ok := anonymous(lines.Text())
		if !ok || x.from != end {
			if holds {
				break
			}
			run = run[:0]
		}
		if !ok {
			continue
		}
		if n := len(run); usable && n > 0 && run[n-1].to == x.from {
			run[n-1].to = x.to // parted by what the kernel was asked for
		} else if usable {
			run = append(run, x)
		}
		end = x.to
		holds = holds || x.from <= at && at < x.to
	}
	if !holds {
		return nil
	}
	return run
}

// anonymous reads a line of /proc/PID/maps: a private mapping of no file, and whether it may be read and written. Others are not ok.
// Kernels that name such mappings for programs put the name behind (proc(5)).
func anonymous(line string) (x stretch, usable, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[4] != "0" || len(fields) > 5 && !strings.HasPrefix(fields[5], "[anon:") {
		return stretch{}, false, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	from, err := strconv.ParseUint(low, 16, 64)
	to, err2 := strconv.ParseUint(high, 16, 64)
	usable = fields[1] == "rw-p"
	return stretch{from, to}, usable, err == nil && err2 == nil && from < to && (usable || fields[1] == "---p")
}
