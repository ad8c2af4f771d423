package worker

import (
	"os"
	"strings"
	"testing"
)

// TestCopiesToAnotherProcess: a worker copies to what another lent, and refuses blocks that do not divide it.
func TestCopiesToAnotherProcess(t *testing.T) {
	server, client := start(t), start(t)
	var far FarMemory
	server.call("lend", 64<<10, &far)
	if far.Process != os.Getpid() || far.Address == 0 || far.Length != 64<<10 {
		t.Fatalf("lent %+v", far)
	}
	var gbps float64
	if a := client.try("copy", CopyArgs{To: far, Bytes: 4096, Seconds: 0.01}); strings.Contains(a.Error, "not permitted") {
		t.Skip(a.Error)
	}
	client.call("copy", CopyArgs{To: far, Bytes: 4096, Seconds: 0.01}, &gbps)
	if !(gbps > 0) {
		t.Errorf("%v Gb/s", gbps)
	}
	for _, bytes := range []int{-1, 0, 5000, 128 << 10} {
		if a := client.try("copy", CopyArgs{To: far, Bytes: bytes}); !strings.Contains(a.Error, "do not divide") {
			t.Errorf("blocks of %d bytes: %q", bytes, a.Error)
		}
	}
}
