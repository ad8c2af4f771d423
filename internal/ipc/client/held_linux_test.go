package client_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// holdBack takes the pages of memory away, and puts a userfaultfd behind them that never provides them.
func holdBack(t *testing.T, mem []byte) {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if errno != 0 {
		t.Skipf("userfaultfd for the kernel's accesses is not permitted here: %v", errno)
	}
	t.Cleanup(func() { unix.Close(int(fd)) })
	api := [3]uint64{0xaa}
	reg := [4]uint64{uint64(uintptr(unsafe.Pointer(&mem[0]))), uint64(len(mem)), 1}
	const apiCall, register = 0xc018aa3f, 0xc020aa00 // linux/userfaultfd.h
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, apiCall, uintptr(unsafe.Pointer(&api))); e != 0 {
		t.Fatal(e)
	}
	if err := unix.Madvise(mem, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, register, uintptr(unsafe.Pointer(&reg))); e != 0 {
		t.Fatal(e)
	}
}

// TestHeldMemoryHarmsItsProgramAlone: registered memory whose pages a program's userfaultfd holds back does not hold the
// driver. The request to it fails: its retries end, or it gets a remote operational error, unless the disconnection that
// follows overtakes that on its way. Another connection of the same adapters goes on.
func TestHeldMemoryHarmsItsProgramAlone(t *testing.T) {
	ctx := testbed.Context(t)
	t.Setenv(client.PathVariable, "process_vm")
	t.Setenv("SOFTVPI_DIRECT", "off") // on the direct path the initiator copies, and waits for its peer's memory itself
	addrs := testbed.Addrs()
	socket, _ := testbed.Driver(t, addrs)
	ends := [2][2]*end{}
	for i := range ends {
		for k := range ends[i] {
			e := get(newEnd(ctx, socket, addrs[k], 1<<20, false))(t)
			defer e.host.Close()
			ends[i][k] = e
		}
		connect(t, ctx, ends[i][0], ends[i][1], addrs[0])
	}
	write := func(i int) error {
		server, client := ends[i][0], ends[i][1]
		return client.do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{client.mr.SGE(0, 100)},
			RemoteAddr: server.mr.RemoteAddr() + 5000, RKey: server.mr.RKey()})
	}
	ok(t, write(0))
	ok(t, write(1))
	time.Sleep(time.Millisecond) // what was found in memory counts as there for a moment
	holdBack(t, ends[0][0].mr.Bytes())
	failed := make(chan error, 1)
	go func() { failed <- write(0) }()
	longest, last := time.Duration(0), time.Now()
	for n := 0; ; n++ {
		ok(t, write(1))
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
		select {
		case err := <-failed:
			if !slices.ContainsFunc([]string{"remote operation error", "retry counter exceeded", "flushed"}, func(s string) bool {
				return err != nil && strings.Contains(err.Error(), s)
			}) {
				t.Errorf("write to the memory held back: %v, want a remote operation error", err)
			}
			t.Logf("%d other writes meanwhile, the longest took %v", n, longest)
			if longest > 2*time.Second && n < 10 { // one that stands still makes no others; a busy machine makes some slow ones among many
				t.Errorf("another connection stood still for %v", longest)
			}
			return
		default:
		}
	}
}
