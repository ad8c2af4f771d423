package reach

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

const page = 4096

// held is memory of this process whose missing pages come when release is called: a userfaultfd stands behind it.
type held struct {
	mem []byte
	fd  int
}

// ioctls and structures of userfaultfd (linux/userfaultfd.h).
const (
	uffdAPI, uffdRegister, uffdZero = 0xc018aa3f, 0xc020aa00, 0xc020aa04
)

func hold(t *testing.T, pages int) *held {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if errno != 0 {
		t.Skipf("userfaultfd for the kernel's accesses is not permitted here: %v", errno)
	}
	mem, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{mem, int(fd)}
	api := [3]uint64{0xaa}
	reg := [4]uint64{uint64(h.addr()), uint64(len(mem)), 1}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, uffdAPI, uintptr(unsafe.Pointer(&api))); e != 0 {
		t.Fatal(e)
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, uffdRegister, uintptr(unsafe.Pointer(&reg))); e != 0 {
		t.Fatal(e)
	}
	t.Cleanup(func() { unix.Close(h.fd); unix.Munmap(mem) })
	return h
}

func (h *held) addr() uint64 { return uint64(uintptr(unsafe.Pointer(&h.mem[0]))) }

// release fills a page with zeros and lets those who wait for it continue.
func (h *held) release(t *testing.T, n int) {
	t.Helper()
	z := [4]uint64{h.addr() + uint64(n*page), page}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(h.fd), uffdZero, uintptr(unsafe.Pointer(&z))); e != 0 {
		t.Fatal(e)
	}
}

// ownRegion returns a region of this process, and a channel of its wake-ups.
func ownRegion(t *testing.T) (*vmRegion, chan bool) {
	t.Helper()
	woken := make(chan bool, 1)
	p := NewProcessVM(os.Getpid(), &Movers{}, func() { // as the real one it does not block
		select {
		case woken <- true:
		default:
		}
	})
	t.Cleanup(p.Close)
	r := newVMRegion(p)
	var b, c [1]byte
	if r.vm.move(unix.SYS_PROCESS_VM_READV, b[:], uint64(uintptr(unsafe.Pointer(&c[0])))) != nil {
		t.Skip("the kernel does not let a process reach its own memory")
	}
	return r, woken
}

// collect waits until n transfers have ended.
func collect(t *testing.T, r *vmRegion, woken chan bool, n int) (all []memory.Finished) {
	t.Helper()
	for len(all) < n {
		select {
		case <-woken:
		case <-time.After(await.Limit):
			t.Fatalf("%d of %d transfers ended", len(all), n)
		}
		var out [4]memory.Finished
		for k := r.Finish(out[:]); k > 0; k = r.Finish(out[:]) {
			all = append(all, out[:k]...)
		}
	}
	return all
}

// TestHeldMemoryIsDeferred: a copy into memory whose page somebody holds back does not hold its caller; it is made by a
// deferred copy when the page comes, and the region is then as it was before. Other memory of the program is reached all
// the while.
func TestHeldMemoryIsDeferred(t *testing.T) {
	h := hold(t, 4)
	r, woken := ownRegion(t)
	other, data := newVMRegion(r.vm), []byte("the data")
	other.patience = time.Minute // its page comes at once, but the machine may be busy
	if err := r.Write(h.addr()+10, data); !errors.Is(err, memory.ErrBlock) || r.Blocking() {
		t.Fatalf("write: %v, blocking %v; want ErrBlock and false", err, r.Blocking())
	}
	if n, err := r.WriteAll([]memory.Piece{{Addr: h.addr() + page, Data: data}}); n != 0 || !errors.Is(err, memory.ErrBlock) {
		t.Errorf("write of pieces: %d, %v; want ErrBlock", n, err)
	}
	got := make([]byte, len(data))
	for i, tr := range []*memory.Transfer{
		{Kind: memory.CopyWrite, Last: true, Addr: h.addr() + 10, Data: data},
		{Kind: memory.CopyRead, Addr: h.addr() + 10, Data: got},
		{Kind: memory.CopyFetchAdd, Addr: h.addr() + 64, Swap: 5},
		{Kind: memory.CopyCompareSwap, Addr: h.addr() + 64, Compare: 5, Swap: 7},
	} {
		tr.Tag = uint64(i)
		r.Start(tr)
	}
	mine := make([]byte, 2*page)
	if err := other.Write(uint64(uintptr(unsafe.Pointer(&mine[0]))), data); err != nil || !bytes.Equal(mine[:len(data)], data) {
		t.Errorf("other memory: %v", err)
	}
	// Nobody was held: the page has not come yet.
	if n := r.Finish(make([]memory.Finished, 4)); n != 0 {
		t.Errorf("%d transfers ended while the page was held back", n)
	}
	h.release(t, 0)
	ends := collect(t, r, woken, 4)
	for i, e := range ends {
		if e.Tag != uint64(i) || e.Err != nil {
			t.Errorf("end %d: %+v", i, e)
		}
	}
	if !bytes.Equal(got, data) || ends[2].Old != 0 || ends[3].Old != 5 || h.mem[64] != 7 {
		t.Errorf("read %q, atomics found %d and %d and left %d", got, ends[2].Old, ends[3].Old, h.mem[64])
	}
	if !r.Blocking() {
		t.Error("the region stays deferred though nothing is left")
	}
	r.patience = time.Minute
	if err := r.Read(got, h.addr()+10); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read after that: %q, %v", got, err)
	}
}

// TestHeldMemoryFails: copies that take too long fail, with all behind them; later ones fail at once while the page is
// held back, and succeed when it has come.
func TestHeldMemoryFails(t *testing.T) {
	h := hold(t, 1)
	r, woken := ownRegion(t)
	r.mover.time = 20 * time.Millisecond
	if err := r.Write(h.addr(), []byte{1}); !errors.Is(err, memory.ErrBlock) {
		t.Fatal(err)
	}
	start := func(tag uint64) {
		r.Start(&memory.Transfer{Kind: memory.CopyWrite, Tag: tag, Addr: h.addr(), Data: []byte{byte(tag)}})
	}
	start(1)
	start(2)
	for i, e := range collect(t, r, woken, 2) {
		if e.Tag != uint64(i+1) || !errors.Is(e.Err, memory.ErrGone) {
			t.Errorf("end %d: %+v, want a failure", i, e)
		}
	}
	start(3)
	var out [4]memory.Finished
	if n := r.Finish(out[:]); n != 1 || out[0].Tag != 3 || !errors.Is(out[0].Err, memory.ErrGone) {
		t.Errorf("%d ended: %+v; want the third, failed", n, out[0])
	}
	h.release(t, 0)
	for end := time.Now().Add(await.Limit); !r.Blocking(); time.Sleep(time.Millisecond) {
		if start(4); time.Now().After(end) {
			t.Fatal("the region stays deferred")
		}
		r.Finish(out[:])
	}
	r.patience = time.Minute
	if err := r.Write(h.addr(), []byte{5}); err != nil || h.mem[0] != 5 {
		t.Errorf("write after the page came: %v, the memory holds %d", err, h.mem[0])
	}
}

// TestFreshMemoryIsReached: memory that was never touched, or was given back, is there within the call.
func TestFreshMemoryIsReached(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 300*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	r, _ := ownRegion(t)
	r.patience = time.Minute // on a busy machine
	at, data := uint64(uintptr(unsafe.Pointer(&mem[0]))), bytes.Repeat([]byte{3}, 290*page)
	for range 2 {
		if err := r.Write(at+5, data); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(mem[5:5+len(data)], data) {
			t.Error("the data differs")
		}
		if err := unix.Madvise(mem, unix.MADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRegisteredMemoryIsMade: the first pages of a region, and those behind a page that was not there, are made without
// being asked for, so that copies to them need nobody else. Pages outside the region are not.
func TestRegisteredMemoryIsMade(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, (2*warmPages+8)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil {
		t.Logf("no small pages: %v", err) // a kernel without large ones
	}
	own, _ := ownRegion(t)
	at := uint64(uintptr(unsafe.Pointer(&mem[0])))
	const length = (2*warmPages + 2) * page
	reached, err := own.vm.Reach(command.RegisterMemory{Base: at, Length: length})
	if err != nil {
		t.Fatal(err)
	}
	r := reached.Remote.(*vmRegion)
	r.patience = time.Minute
	made := func(first, pages int) {
		t.Helper()
		await.Eventually(t, "the pages are made", func() bool { return !r.warming.Load() })
		r.looked = time.Time{}
		if !r.there(at+uint64(first*page), pages*page, false) {
			t.Errorf("pages %d to %d are not there", first, first+pages)
		}
	}
	made(0, warmPages)
	if r.there(at+warmPages*page, page, false) {
		t.Errorf("page %d was made at registration", warmPages)
	}
	if err := r.Write(at+warmPages*page, []byte{1}); err != nil {
		t.Fatal(err)
	}
	made(warmPages, warmPages+1)
	if err := r.Write(at+(2*warmPages+1)*page-1, []byte{1, 2}); err != nil { // the last page is the region's end
		t.Fatal(err)
	}
	made(2*warmPages, 1)
	if r.there(at+length, page, false) {
		t.Error("a page behind the region was made")
	}
}
