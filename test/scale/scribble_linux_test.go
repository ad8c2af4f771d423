package scale

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
	"unsafe"
)

// scribble overwrites the rings that this process shares with the driver, again and again for some time. The process
// is useless after that.
func scribble(a askArgs) (int, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var shared [][]byte
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil {
			return 0, err
		}
		if rights == "rw-s" && strings.Contains(lines.Text(), "memfd:") {
			shared = append(shared, mapped(from, to))
		}
	}
	if len(shared) == 0 {
		return 0, fmt.Errorf("no memory is shared with a driver")
	}
	r := rand.New(rand.NewPCG(a.Seed, 3))
	n := 0
	for end := time.Now().Add(time.Duration(a.Seconds * float64(time.Second))); time.Now().Before(end); n++ {
		m := shared[r.IntN(len(shared))]
		at := r.IntN(len(m)/8) * 8
		switch r.IntN(3) {
		case 0: // a word in a header, or near one
			at &^= 63
			fallthrough
		case 1:
			*(*uint32)(unsafe.Pointer(&m[at])) = r.Uint32() >> r.IntN(32)
		default:
			for i := at; i < min(at+256, len(m)); i++ {
				m[i] = byte(r.Uint32())
			}
		}
	}
	return n, nil
}

// mapped returns the memory of a mapping.
func mapped(from, to uintptr) []byte {
	// The addresses are the kernel's; no Go object is there.
	p := *(*unsafe.Pointer)(unsafe.Pointer(&from))
	return unsafe.Slice((*byte)(p), to-from)
}
