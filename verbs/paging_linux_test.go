package verbs_test

import (
	"bytes"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

const (
	page  = testbed.Page
	pages = 64
)

// mapped returns pages that nobody has touched yet.
func mapped(t *testing.T) []byte {
	t.Helper()
	mem := must(unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	ok(t, unix.Madvise(mem, unix.MADV_NOHUGEPAGE))
	return mem
}

// move puts one page of memory in the place of another.
func move(t *testing.T, to []byte, n int, from []byte) {
	t.Helper()
	if _, _, e := unix.Syscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(&from[0])), page, page,
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, uintptr(unsafe.Pointer(&to[n*page])), 0); e != 0 {
		t.Fatal(e)
	}
}

// TestOnDemandEmbedded: memory of the program that is on demand, for an adapter in the program itself: no page is touched when it
// is registered, pages that come, move and are emptied are used as they are, and one that is missing is an error of the request
// that uses it, and no fault of the program.
func TestOnDemandEmbedded(t *testing.T) {
	for _, wire := range []bool{false, true} {
		t.Run(map[bool]string{false: "local", true: "wire"}[wire], func(t *testing.T) {
			adapters := testbed.Adapters(testbed.Addrs())
			for i := range adapters {
				adapters[i].Wire = wire
			}
			h := must(verbs.Embed(verbs.Config{Name: "test", Adapters: adapters}))(t)
			t.Cleanup(func() { ok(t, h.Close()) })
			b := &testbed.Bed{Mode: verbs.Embedded, Server: h, Client: h, Addrs: [2]netip.Addr{adapters[0].Addr, adapters[1].Addr}}
			testOnDemand(t, b)
		})
	}
}

func testOnDemand(t *testing.T, b *testbed.Bed) {
	const access = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic | verbs.OnDemand
	server, client := connected(t, b)
	far, near := mapped(t), mapped(t)
	theirs, own := must(server.pd.Register(far, access))(t), must(client.pd.Register(near, access))(t)
	if n := testbed.Resident(t, far) + testbed.Resident(t, near); n != 0 {
		t.Errorf("registering touched %d pages", n)
	}
	if theirs.Path() != verbs.PathProcessVM {
		t.Errorf("memory on demand is reached by %v", theirs.Path())
	}
	request := func(op verbs.Opcode, from, to, n int) {
		client.send(t, verbs.SendWR{Op: op, SGE: []verbs.SGE{own.SGE(from, n)}, RemoteAddr: theirs.RemoteAddr() + uint64(to),
			RKey: theirs.RKey(), Add: 5})
	}
	copy(near[2*page:], bytes.Repeat([]byte{7}, 3*page))
	request(verbs.OpWrite, 2*page, 10*page+100, 3*page)
	client.want(t, verbs.CompletedWrite, verbs.Success)
	if !bytes.Equal(far[10*page+100:13*page+100], near[2*page:5*page]) {
		t.Error("the write did not arrive in pages that were missing")
	}
	request(verbs.OpRead, 20*page, 10*page+100, 3*page)
	client.want(t, verbs.CompletedRead, verbs.Success)
	if !bytes.Equal(near[20*page:23*page], near[2*page:5*page]) {
		t.Error("the read did not arrive in pages that were missing")
	}
	server.recv(t, 1, theirs.SGE(30*page, 2*page))
	client.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{own.SGE(2*page, 2*page)}})
	client.want(t, verbs.CompletedSend, verbs.Success)
	server.want(t, verbs.CompletedRecv, verbs.Success)
	if !bytes.Equal(far[30*page:32*page], near[2*page:4*page]) {
		t.Error("the message did not arrive in pages that were missing")
	}
	request(verbs.OpFetchAdd, 24*page, 40*page, 8)
	client.want(t, verbs.CompletedFetchAdd, verbs.Success)
	if far[40*page] != 5 {
		t.Errorf("the atomic left %d in a page that was missing, want 5", far[40*page])
	}
	// Another page comes in the place of one that was used, and one is emptied.
	moved := mapped(t)
	moved[9] = 9
	move(t, far, 10, moved)
	ok(t, unix.Madvise(far[11*page:12*page], unix.MADV_DONTNEED))
	request(verbs.OpRead, 25*page, 10*page, 2*page)
	client.want(t, verbs.CompletedRead, verbs.Success)
	if near[25*page+9] != 9 || !bytes.Equal(near[26*page:27*page], make([]byte, page)) {
		t.Error("the read did not find what was moved there, and emptied")
	}
	ok(t, own.Prefetch(50*page, 4*page, true))
	if n := testbed.Resident(t, near[50*page:54*page]); n != 4 {
		t.Errorf("%d of 4 pages prefetched", n)
	}
	missing(t, b, theirs, own)
	ok(t, theirs.Deregister())
	ok(t, own.Deregister())
}

// missing uses pages that are not there any more, on connections of their own, which end of it.
func missing(t *testing.T, b *testbed.Bed, theirs, own *verbs.MR) {
	t.Helper()
	far, near := theirs.Bytes(), own.Bytes()
	server, client := connected(t, b)
	peers, mine := must(server.pd.Register(far, theirs.Access()))(t), must(client.pd.Register(near, own.Access()))(t)
	testbed.Unmap(t, far, 33*page)
	client.send(t, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{mine.SGE(2*page, 100)}, RemoteAddr: peers.RemoteAddr() + 33*page,
		RKey: peers.RKey()})
	if wc := client.next(t); wc.Status != verbs.RemoteAccess && wc.Status != verbs.RemoteOperation {
		t.Errorf("write to a page that was unmapped: %v, want a remote error", wc.Status)
	}
	ok(t, peers.Deregister())
	ok(t, mine.Deregister())
	server, client = connected(t, b)
	mine = must(client.pd.Register(near, own.Access()))(t)
	testbed.Unmap(t, near, 34*page)
	client.send(t, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{mine.SGE(34*page, 100)}, RemoteAddr: server.mr.RemoteAddr(),
		RKey: server.mr.RKey()})
	client.want(t, verbs.CompletedWrite, verbs.LocalProtection)
	ok(t, mine.Deregister())
	testbed.WantErr(t, own.Prefetch(33*page, 2*page, false), verbs.ErrAccess)
}
