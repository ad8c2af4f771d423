package client_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// BenchmarkAttachedWrite writes 1 MB blocks that cycle through 16 MB, 4 at a time, between two programs that share a
// driver, for each way in which the driver reaches their memory. memcpy is one thread copying the same blocks.
func BenchmarkAttachedWrite(b *testing.B) {
	const block, blocks, depth = 1 << 20, 16, 4
	b.Run("memcpy", func(b *testing.B) {
		src, dst := make([]byte, block*blocks), make([]byte, block*blocks)
		b.SetBytes(block)
		for i := 0; b.Loop(); i++ {
			off := i % blocks * block
			copy(dst[off:off+block], src[off:off+block])
		}
	})
	for _, name := range []string{"mapped", "process_vm", "copier", "mapped/wire", "process_vm/wire", "copier/wire"} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			path, wire := strings.CutSuffix(name, "/wire")
			if path != "mapped" {
				b.Setenv(client.PathVariable, path)
			}
			addrs := testbed.Addrs()
			socket, driver := testbed.Driver(b, addrs)
			if wire {
				for i := range uint32(2) {
					ok(b, driver.SetPath(i, device.PathWire))
				}
			}
			server := get(newEnd(ctx, socket, addrs[0], block*blocks, path == "mapped"))(b)
			defer server.host.Close()
			client := get(newEnd(ctx, socket, addrs[1], block*blocks, path == "mapped"))(b)
			defer client.host.Close()
			connect(b, ctx, server, client, addrs[0])
			post := func(i int) {
				off := i % blocks * block
				ok(
					b,
					client.qp.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{client.mr.SGE(off, block)},
						RemoteAddr: server.mr.RemoteAddr() + uint64(off), RKey: server.mr.RKey()}),
				)
			}
			for i := range depth {
				post(i)
			}
			b.SetBytes(block)
			i := depth
			for b.Loop() {
				ok(b, client.next(ctx))
				post(i)
				i++
			}
			b.StopTimer()
			for range depth {
				ok(b, client.next(ctx))
			}
		})
	}
}

// BenchmarkAttachedLatency is a ping-pong of 8-byte writes between two attached programs that poll their memory; an
// operation is one way.
func BenchmarkAttachedLatency(b *testing.B) {
	ctx := b.Context()
	addrs := testbed.Addrs()
	socket, _ := testbed.Driver(b, addrs)
	var ends [2]*end
	for i := range ends {
		ends[i] = get(newEnd(ctx, socket, addrs[i], 4096, true))(b)
		defer ends[i].host.Close()
	}
	connect(b, ctx, ends[0], ends[1], addrs[0])
	// Each end writes its word at offset 8 into the other's word at offset 0, and takes the completion.
	turn := func(e, peer *end, n uint64) {
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&e.mr.Bytes()[8])), n)
		ok(b, e.qp.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(8, 8)},
			RemoteAddr: peer.mr.RemoteAddr(), RKey: peer.mr.RKey()}))
		seen := (*uint64)(unsafe.Pointer(&peer.mr.Bytes()[0]))
		var wc [1]verbs.WC
		for left := 1; left > 0 || atomic.LoadUint64(seen) != n; {
			k := get(e.cq.Poll(wc[:]))(b)
			left -= k
		}
	}
	for n := uint64(1); b.Loop(); n++ {
		turn(ends[n%2], ends[1-n%2], n)
	}
}
