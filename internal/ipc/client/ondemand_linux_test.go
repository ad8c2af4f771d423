package client_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

const onDemand = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.OnDemand

// TestOnDemand: registering a region on demand touches no page. What is at its addresses is used, whatever that is, by the
// driver and by the program's own initiator; what is missing is an error of the queue pair that asked for it alone.
func TestOnDemand(t *testing.T) {
	for _, direct := range []string{"on", "off"} {
		for _, path := range []string{"process_vm", "copier"} {
			t.Run(path+", direct path "+direct, func(t *testing.T) { testOnDemand(t, direct, path) })
		}
	}
}

func testOnDemand(t *testing.T, direct, path string) {
	ctx := testbed.Context(t)
	t.Setenv(client.PathVariable, path)
	t.Setenv("SOFTVPI_DIRECT", direct)
	addrs := testbed.Addrs()
	socket, _ := testbed.Driver(t, addrs)
	var server, program [2]*end
	for i := range server {
		server[i], program[i] = get(newEnd(ctx, socket, addrs[0], 1<<16, false))(t), get(newEnd(ctx, socket, addrs[1], 1<<16, false))(t)
		defer server[i].host.Close()
		defer program[i].host.Close()
		connect(t, ctx, server[i], program[i], addrs[0])
	}
	const size = 64 * 4096
	mem := get(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	mr := get(server[0].qp.PD().Register(mem, onDemand))(t)
	if n := testbed.Resident(t, mem); n != 0 {
		t.Errorf("registering touched %d pages", n)
	}
	own := get(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	ownMR := get(program[0].qp.PD().Register(own, onDemand))(t)
	write := func(i, from, to int) error {
		return program[i].do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{ownMR.SGE(from, 100)},
			RemoteAddr: mr.RemoteAddr() + uint64(to), RKey: mr.RKey()})
	}
	copy(own[8192:], bytes.Repeat([]byte{7}, 100))
	ok(t, write(0, 8192, 5000))
	if !bytes.Equal(mem[5000:5100], own[8192:8292]) {
		t.Error("the write did not arrive in a page that was missing")
	}
	ok(t, ownMR.Prefetch(0, 4*4096, true))
	if n := testbed.Resident(t, own[:4*4096]); n != 4 {
		t.Errorf("%d of 4 pages prefetched", n)
	}
	testbed.WantErr(t, ownMR.Prefetch(size-10, 11, false), verbs.ErrInvalid)
	// A hole in what the peer has: munmap of part of a mapping, as free does it.
	testbed.Unmap(t, mem, 2*4096)
	if err := write(0, 8192, 2*4096); err == nil || !strings.Contains(err.Error(), "remote") {
		t.Errorf("write to a page that was unmapped: %v, want a remote error", err)
	}
	testbed.WantErr(t, mr.Prefetch(0, 4*4096, true), verbs.ErrAccess)
	ok(t, program[1].do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{program[1].mr.SGE(0, 100)},
		RemoteAddr: server[1].mr.RemoteAddr(), RKey: server[1].mr.RKey()}))
	// And in what the program sends itself: no fault of the program.
	hole := get(program[1].qp.PD().Register(own, onDemand))(t)
	testbed.Unmap(t, own, 3*4096)
	err := program[1].do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{hole.SGE(3*4096, 100)},
		RemoteAddr: server[1].mr.RemoteAddr(), RKey: server[1].mr.RKey()})
	if err == nil || !strings.Contains(err.Error(), "local protection") {
		t.Errorf("write from a page that was unmapped: %v, want a local protection error", err)
	}
}
