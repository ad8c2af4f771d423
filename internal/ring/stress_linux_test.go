package ring

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// The two-process stress: this test binary, started again, is the program, and the test is the loop. They share one
// memfd, with rings small enough to be full and empty all the time, and sleep whenever they find nothing.

const (
	stressVariable = "SOFTVPI_TEST_RING"
	stressQPs      = 3
	stressRequests = 60_000
	stressDepth    = 8
)

// stressRings are the rings in the shared memory.
type stressRings struct {
	bells *Doorbells
	send  [stressQPs]*Send
	cq    *CQ
}

func stressSize() int {
	return DoorbellGeometry(2).Size() + stressQPs*SendGeometry(stressDepth, 4, 64).Size() + CQGeometry(stressQPs*stressDepth).Size()
}

func openStress(mem []byte) (r stressRings, err error) {
	cut := func(g Geometry) []byte {
		b := mem[:g.Size()]
		mem = mem[g.Size():]
		return b
	}
	if r.bells, err = OpenDoorbells(cut(DoorbellGeometry(2)), DoorbellGeometry(2)); err != nil {
		return r, err
	}
	g := SendGeometry(stressDepth, 4, 64)
	for i := range r.send {
		if r.send[i], err = OpenSend(cut(g), g); err != nil {
			return r, err
		}
	}
	g = CQGeometry(stressQPs * stressDepth)
	r.cq, err = OpenCQ(cut(g), g)
	return r, err
}

func TestMain(m *testing.M) {
	if os.Getenv(stressVariable) != "" {
		if err := stressProgram(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// request fills in request i of a QP.
func request(wr *SendWR, qp, i int) {
	wr.Op = OpWrite
	wr.ID = uint64(qp)<<32 | uint64(i)
	wr.RemoteAddr = wr.ID * 0x9e3779b97f4a7c15
	wr.RKey = uint32(i) ^ 0x5a5a5a5a
	if i%3 == 0 {
		wr.Flags, wr.NumSGE = Inline, 0
		wr.Inline = wr.Inline[:0]
		for k := range i % 64 {
			wr.Inline = append(wr.Inline, byte(i+k))
		}
		return
	}
	wr.Flags, wr.NumSGE = 0, uint8(i%5)
	for k := range wr.NumSGE {
		wr.SGE[k] = SGE{Addr: uint64(i) << k, Length: uint32(i), LKey: uint32(k)}
	}
}

func checkRequest(got *SendWR, qp, i int) error {
	want := SendWR{Inline: make([]byte, 0, 64)}
	request(&want, qp, i)
	ok := got.Op == want.Op && got.ID == want.ID && got.RemoteAddr == want.RemoteAddr && got.RKey == want.RKey &&
		got.Flags == want.Flags && got.NumSGE == want.NumSGE
	if want.Flags == Inline {
		ok = ok && string(got.Inline) == string(want.Inline)
	} else {
		for k := range want.NumSGE {
			ok = ok && got.SGE[k] == want.SGE[k]
		}
	}
	if !ok {
		return fmt.Errorf("request %d of QP %d: got %+v", i, qp, got)
	}
	return nil
}

// stressProgram posts on each QP from a thread of its own and polls on another.
func stressProgram() error {
	mem, err := unix.Mmap(3, 0, stressSize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	r, err := openStress(mem)
	if err != nil {
		return err
	}
	errs := make(chan error, stressQPs)
	var polled [stressQPs]atomic.Int32 // the CQ has room for stressDepth of each QP
	for qp := range stressQPs {
		go func() { errs <- stressPost(r, qp, &polled[qp]) }()
	}
	if err := stressPoll(r.cq, &polled); err != nil {
		return err
	}
	for range stressQPs {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// stressPost posts every request of a QP.
func stressPost(r stressRings, qp int, polled *atomic.Int32) error {
	wr := SendWR{Inline: make([]byte, 0, 64)}
	for i := 0; i < stressRequests; {
		err := ErrFull
		if i-int(polled.Load()) < stressDepth {
			request(&wr, qp, i)
			err = r.send[qp].Post(&wr)
		}
		switch err {
		case nil:
			i++
			if r.bells.Ring(uint32(qp)) {
				_, _ = unix.Write(4, []byte{1})
			}
		case ErrFull:
			runtime.Gosched()
			unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			return err
		}
	}
	return nil
}

// stressPoll takes every completion and sleeps in between.
func stressPoll(cq *CQ, polled *[stressQPs]atomic.Int32) error {
	var next [stressQPs]int
	var out [5]CQE
	for left := stressQPs * stressRequests; left > 0; {
		n := cq.Poll(out[:])
		for _, e := range out[:n] {
			if int(e.QPN) >= stressQPs || e.ID != uint64(e.QPN)<<32|uint64(next[e.QPN]) || e.ByteLen != uint32(e.ID) {
				return fmt.Errorf("completion %+v, want %d", e, next)
			}
			next[e.QPN]++
			polled[e.QPN].Add(1)
		}
		if left -= n; n > 0 || left == 0 {
			continue
		}
		seq := cq.Sequence()
		cq.Arm(ArmAny)
		if !cq.Empty() {
			continue
		}
		cq.Sleep()
		for cq.Sequence() == seq { // without a time limit: a lost wake-up hangs the test
			unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(cq.SequenceWord())), 0, uintptr(seq), 0, 0, 0)
		}
		cq.Awake()
	}
	return nil
}

// TestTwoProcesses: between two processes every request and every completion arrives once, in order and whole, and no
// wake-up is lost (the test would hang).
func TestTwoProcesses(t *testing.T) {
	systemtest.Mark(t)
	fd, err := unix.MemfdCreate("ring-stress", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "memfd")
	defer file.Close()
	if err := file.Truncate(int64(stressSize())); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(fd, 0, stressSize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	r, err := openStress(mem)
	if err != nil {
		t.Fatal(err)
	}
	bell, ring, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer bell.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), stressVariable+"=1")
	cmd.ExtraFiles = []*os.File{file, ring}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ring.Close()
	result := make(chan error, 1)
	go func() { result <- cmd.Wait() }()
	sleeps, err := stressLoop(r, bell)
	if err != nil {
		_ = cmd.Process.Kill()
		t.Error(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	t.Logf("%d sleeps of the loop", sleeps)
}

// stressLoop is the loop's side. It ends when everything is completed, or when the program's end closes the pipe.
func stressLoop(r stressRings, bell *os.File) (sleeps int, err error) {
	var next [stressQPs]int
	var held [stressQPs]int
	var bells [4]uint32
	buf := make([]byte, 64)
	take := func(qp int) error {
		var wr SendWR
		var w Work
		for {
			ok, err := r.send[qp].Next(&w)
			if err != nil || !ok {
				return err
			}
			wr.set(&w)
			r.send[qp].Elements(&w, wr.SGE[:w.NumSGE])
			if err := checkRequest(&wr, qp, next[qp]); err != nil {
				return err
			}
			next[qp]++
			if event, err := r.cq.Push(&CQE{ID: wr.ID, QPN: uint32(qp), ByteLen: uint32(wr.ID)}); err != nil {
				return err
			} else if event {
				if _, wake := r.cq.Fire(); wake {
					unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(r.cq.SequenceWord())), 1, 1<<30, 0, 0, 0)
				}
			}
			// Released late now and then, so that slots are held for a while.
			if held[qp]++; rand.IntN(3) == 0 {
				r.send[qp].Release(held[qp])
				held[qp] = 0
			}
		}
	}
	for {
		total := 0
		for qp := range next {
			total += next[qp]
			r.send[qp].Release(held[qp])
			held[qp] = 0
		}
		if total == stressQPs*stressRequests {
			return sleeps, nil
		}
		n, scan, err := r.bells.Drain(bells[:])
		if err != nil {
			return sleeps, err
		}
		for _, qp := range bells[:n] {
			if err := take(int(qp)); err != nil {
				return sleeps, err
			}
		}
		for qp := range stressQPs {
			if scan {
				if err := take(qp); err != nil {
					return sleeps, err
				}
			}
		}
		if n > 0 || scan || !r.bells.Sleep() {
			continue
		}
		sleeps++
		if _, err := bell.Read(buf); err != nil {
			return sleeps, fmt.Errorf("the program ended early: %v", err)
		}
		r.bells.Awake()
	}
}
