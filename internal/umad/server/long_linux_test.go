package server

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/wire/mad"
)

// holdPage keeps a reference to the first page of a file, as parts of the kernel do now and then for a moment.
func holdPage(t *testing.T, fd int) {
	t.Helper()
	b, err := unix.Mmap(fd, 0, mad.Len, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(pipe[0]); unix.Close(pipe[1]) })
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(mad.Len)
	if _, err := unix.Vmsplice(pipe[1], []unix.Iovec{v}, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Munmap(b); err != nil {
		t.Fatal(err)
	}
}

// A program's memory file is read without the seal against writing, which the kernel refuses while anything holds a
// page of it.
func TestReadFile_PageHeldByTheKernel(t *testing.T) {
	data := bytes.Repeat([]byte("segment "), 8192)
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(fd)
	if n, err := unix.Write(fd, data); n != len(data) || err != nil {
		t.Fatal(n, err)
	}
	if _, err := readFile(fd, int64(len(data))); !errors.Is(err, unix.EPERM) {
		t.Errorf("a file that may shrink: %v, want EPERM", err)
	}
	holdPage(t, fd)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("the seal against writing: %v, want EBUSY", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	if got, err := readFile(fd, int64(len(data))); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// What is delivered needs no seal that the kernel may refuse, so that no message is lost for that.
func TestLongFile_NotSealed(t *testing.T) {
	fd, err := longFile(make([]byte, 100_000))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || seals&unix.F_SEAL_WRITE != 0 {
		t.Errorf("seals %#x, %v", seals, err)
	}
}
