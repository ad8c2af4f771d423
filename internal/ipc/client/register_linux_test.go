package client_test

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// BenchmarkRegister measures how long a program waits for a registration of its own memory, written to before or
// fresh, and of memory that the API allocates; embedded and attached.
func BenchmarkRegister(b *testing.B) {
	for _, mode := range testbed.Modes() {
		for _, megabytes := range []int{1, 64, 1024} {
			for _, kind := range []string{"written", "fresh", "allocated"} {
				b.Run(mode.String()+"/"+strconv.Itoa(megabytes)+"MB/"+kind, func(b *testing.B) { register(b, mode, megabytes<<20, kind) })
			}
		}
	}
}

func register(b *testing.B, mode verbs.Mode, size int, kind string) {
	t := testbed.New(b, mode)
	dev := get(t.Client.DeviceByAddr(t.Addrs[1]))(b)
	pd := get(dev.AllocPD())(b)
	b.StopTimer()
	b.ResetTimer()
	for range b.N {
		var own []byte
		if kind != "allocated" {
			own = get(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(b)
		}
		for i := 0; kind == "written" && i < size; i += 4096 {
			own[i] = 1
		}
		var mr *verbs.MR
		b.StartTimer()
		if kind == "allocated" {
			mr = get(pd.Allocate(size, everything))(b)
		} else {
			mr = get(pd.Register(own, everything))(b)
		}
		b.StopTimer()
		ok(b, mr.Deregister())
		if own != nil {
			ok(b, unix.Munmap(own))
		}
	}
}
