package memory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/testbed/race"
)

// TestWindowAccess: what a bound window grants, and to whom (IBA 10.6.7).
func TestWindowAccess(t *testing.T) {
	const base = 0x5000
	tests := []struct {
		name     string
		typ      uint8
		access   Access
		pd       PD
		qpn      uint32
		addr, n  uint64
		need     Access
		err      error
		wantAddr uint64
	}{
		{"whole", 1, RemoteRead, 1, 9, base + 10, 20, RemoteRead, nil, base + 10},
		{"part", 2, RemoteRead | RemoteWrite, 1, 7, base + 20, 10, RemoteWrite, nil, base + 20},
		{"local write means nothing in it", 2, RemoteRead | LocalWrite, 1, 7, base + 10, 20, RemoteRead, nil, base + 10},
		{"local write is not remote write", 1, RemoteRead | LocalWrite, 1, 9, base + 10, 20, RemoteWrite, ErrAccess, 0},
		{"before", 1, RemoteRead, 1, 9, base + 9, 2, RemoteRead, ErrBounds, 0},
		{"past", 1, RemoteRead, 1, 9, base + 20, 11, RemoteRead, ErrBounds, 0},
		{"region but not window", 1, RemoteRead, 1, 9, base, 1, RemoteRead, ErrBounds, 0},
		{"right of the region only", 1, RemoteRead, 1, 9, base + 10, 1, RemoteWrite, ErrAccess, 0},
		{"other domain", 1, RemoteRead, 2, 9, base + 10, 1, RemoteRead, ErrDomain, 0},
		{"type 1 by any QP", 1, RemoteRead, 1, 1234, base + 10, 1, RemoteRead, nil, base + 10},
		{"type 2 by its QP", 2, RemoteRead, 1, 7, base + 10, 1, RemoteRead, nil, base + 10},
		{"type 2 by another QP", 2, RemoteRead, 1, 8, base + 10, 1, RemoteRead, ErrDomain, 0},
		{"type 2 zero-based", 2, RemoteRead | ZeroBased, 1, 7, 19, 1, RemoteRead, nil, base + 29},
		{"type 2 zero-based past", 2, RemoteRead | ZeroBased, 1, 7, 20, 1, RemoteRead, ErrBounds, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tab := NewTable(8, nil)
			r := region(t, tab, Region{PD: 1, Base: base, Length: 100, Access: rw})
			w, err := tab.AllocWindow(1, tt.typ)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tab.Remote(1, 7, w.Key(), base+10, 1, RemoteRead); !errors.Is(err, ErrKey) {
				t.Errorf("unbound: %v", err)
			}
			key := w.Key()
			if tt.typ == 2 {
				key = NextKey(key)
			}
			key, err = tab.Bind(Bind{PD: 1, QPN: 7, Key: key, LKey: r.Key, Addr: base + 10, Length: 20, Access: tt.access})
			if err != nil {
				t.Fatal(err)
			}
			s, err := tab.Remote(tt.pd, tt.qpn, key, tt.addr, tt.n, tt.need)
			if !errors.Is(err, tt.err) {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if err == nil && (s.Region != r || s.Addr != tt.wantAddr) {
				t.Errorf("the window leads to %#x, want %#x", s.Addr, tt.wantAddr)
			}
			if _, err := tab.Local(1, key, base+10, 1, 0); !errors.Is(err, ErrKey) {
				t.Errorf("a window's rkey as an lkey: %v", err)
			}
		})
	}
}

// TestWindowLife: binding a type 1 window again retires its previous R_Key. A type 2 window must be invalidated
// first, by its own QP. Then the region can be deregistered.
func TestWindowLife(t *testing.T) {
	tab := NewTable(8, nil)
	r := region(t, tab, Region{PD: 1, Length: 100, Access: rw})
	one, _ := tab.AllocWindow(1, 1)
	two, _ := tab.AllocWindow(1, 2)
	b1 := Bind{PD: 1, Key: one.Key(), LKey: r.Key, Length: 10, Access: RemoteRead}
	k1, err := tab.Bind(b1)
	if err != nil || k1 != NextKey(b1.Key) {
		t.Fatal(k1, err)
	}
	b1.Key = k1
	k2, err := tab.Bind(b1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Remote(1, 0, k1, 0, 1, RemoteRead); !errors.Is(err, ErrKey) {
		t.Errorf("old rkey: %v", err)
	}
	if _, err := tab.Bind(b1); !errors.Is(err, ErrKey) {
		t.Errorf("bind by the old rkey: %v", err)
	}
	b2 := Bind{PD: 1, QPN: 3, Key: NextKey(two.Key()), LKey: r.Key, Length: 10, Access: RemoteRead}
	k3, err := tab.Bind(b2)
	if err != nil || k3 != b2.Key {
		t.Fatal(k3, err)
	}
	b2.Key = NextKey(k3)
	if _, err := tab.Bind(b2); !errors.Is(err, errState) {
		t.Errorf("bound type 2: %v", err)
	}
	if err := tab.Deregister(r.Key); !errors.Is(err, ErrBound) {
		t.Errorf("deregister: %v", err)
	}
	for _, tt := range []struct {
		name string
		qpn  uint32
		key  uint32
		err  error
	}{
		{"another QP", 4, k3, ErrDomain}, {"a region", 3, r.Key, ErrAccess}, {"type 1", 3, k2, ErrAccess},
		{"a stale key", 3, k3 ^ 0x80, ErrKey}, {"its own", 3, k3, nil}, {"twice", 3, k3, ErrKey},
	} {
		if err := tab.Invalidate(1, tt.qpn, tt.key); !errors.Is(err, tt.err) {
			t.Errorf("invalidate %s: %v, want %v", tt.name, err, tt.err)
		}
	}
	if _, err := tab.Remote(1, 3, k3, 0, 1, RemoteRead); !errors.Is(err, ErrKey) {
		t.Errorf("after invalidate: %v", err)
	}
	if _, err := tab.Bind(b2); err != nil {
		t.Errorf("bind after invalidate: %v", err)
	}
	tab.ReleaseQP(3)
	if err := tab.FreeWindow(k2); err != nil {
		t.Error(err)
	}
	if err := tab.Deregister(r.Key); err != nil {
		t.Errorf("after the windows: %v", err)
	}
}

func TestBindRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		typ    uint8
		region Access
		b      Bind
		err    error
	}{
		{"region without the bind right", 1, LocalWrite, Bind{PD: 1, Length: 1, Access: RemoteRead}, ErrAccess},
		{"write through a read-only region", 1, WindowBind, Bind{PD: 1, Length: 1, Access: RemoteWrite}, ErrAccess},
		{"atomic through a read-only region", 2, WindowBind, Bind{PD: 1, Length: 1, Access: RemoteAtomic}, ErrAccess},
		{"past the region", 1, rw, Bind{PD: 1, Addr: 90, Length: 11, Access: RemoteRead}, ErrBounds},
		{"other domain", 1, rw, Bind{PD: 2, Length: 1}, ErrDomain},
	} {
		tab := NewTable(4, nil)
		r := region(t, tab, Region{PD: 1, Length: 100, Access: tt.region})
		w, _ := tab.AllocWindow(1, tt.typ)
		tt.b.LKey, tt.b.Key = r.Key, w.Key()
		if tt.typ == 2 {
			tt.b.Key = NextKey(w.Key())
		}
		if _, err := tab.Bind(tt.b); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
		if w.region != nil || r.Windows() != 0 {
			t.Errorf("%s: bound after all", tt.name)
		}
	}
}

// TestPlace: data of every length and alignment arrives whole, and nothing else is touched.
func TestPlace(t *testing.T) {
	src := make([]byte, 40)
	for i := range src {
		src[i] = byte(i + 1)
	}
	for off := range 16 {
		for n := range 25 {
			words := make([]uint64, 8)
			dst := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 64)
			Place(dst[off:off+n], src[3:3+n])
			want := make([]byte, 64)
			copy(want[off:], src[3:3+n])
			if !bytes.Equal(dst, want) {
				t.Fatalf("offset %d, %d bytes: %x", off, n, dst)
			}
		}
	}
}

// TestPlaceFar: the same holds for the payloads of packets.
func TestPlaceFar(t *testing.T) {
	src := make([]byte, farMost+80)
	for i := range src {
		src[i] = byte(i*7 + 1)
	}
	for off := range 9 {
		for _, n := range []int{farLeast - 1, farLeast, farLeast + 1, farLeast + 63, farLeast + 64, farMost - 1, farMost, farMost + 1} {
			dst, want := make([]byte, farMost+64), make([]byte, farMost+64)
			placeFar(dst[off:off+n], src[3:3+n])
			copy(want[off:], src[3:3+n])
			if !bytes.Equal(dst, want) {
				t.Fatalf("offset %d, %d bytes differ", off, n)
			}
		}
	}
}

// TestLastByteLast: a reader that sees the last byte of a write sees all of it.
func TestLastByteLast(t *testing.T) {
	for _, n := range []int{128, farLeast, farMost} {
		lastByteLast(t, n)
	}
}

func lastByteLast(t *testing.T, n int) {
	words := make([]uint64, n/8)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
	last := (*uint32)(unsafe.Pointer(&mem[n-4]))
	r := Region{Length: uint64(n), Access: LocalWrite, Bytes: mem}
	const rounds = 1000
	var seen, turn atomic.Uint32
	go func() {
		src := make([]byte, n)
		for i := uint32(1); i <= rounds; i++ {
			for j := range src {
				src[j] = byte(i)
			}
			_ = r.WriteLast(0, src)
			turn.Store(i)
			for seen.Load() != i {
			}
		}
	}()
	for i := uint32(1); i <= rounds; i++ {
		want := uint32(byte(i)) * 0x01010101
		if race.Detector {
			for turn.Load() != i { // what it does is a race by design: do not run it under the detector
			}
		}
		for atomic.LoadUint32(last) != want {
		}
		for j, c := range mem {
			if c != byte(i) {
				t.Fatalf("round %d: byte %d is %d", i, j, c)
			}
		}
		seen.Store(i)
	}
}

func TestAtomicAlignment(t *testing.T) {
	words := make([]uint64, 4)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 32)
	for _, tt := range []struct {
		base, addr uint64
		skew       int
		err        error
	}{
		{0x1000, 0x1008, 0, nil}, {0x1000, 0x1004, 0, ErrAlign}, {0x1001, 0x1008, 1, nil},
		{0x1000, 0x1008, 1, ErrAlign}, // the address is aligned, the memory is not
		{0x1000, 0x1018, 0, nil}, {0x1000, 0x1020, 0, ErrBounds},
	} {
		n := 32 - tt.skew
		r := Region{Base: tt.base, Length: uint64(n), Access: LocalWrite, Bytes: mem[tt.skew:]}
		if _, err := r.FetchAdd(tt.addr, 1); !errors.Is(err, tt.err) {
			t.Errorf("%+v: fetch and add: %v", tt, err)
		}
		if _, err := r.CompareSwap(tt.addr, 0, 1); !errors.Is(err, tt.err) {
			t.Errorf("%+v: compare and swap: %v", tt, err)
		}
	}
}

// TestProcessorAtomics: atomics on mapped memory are atomic with respect to the processors' own.
func TestProcessorAtomics(t *testing.T) {
	words := make([]uint64, 2)
	r := Region{Length: 16, Access: LocalWrite, Bytes: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 16)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 5000 {
				_, _ = r.FetchAdd(0, 1)
				atomic.AddUint64(&words[0], 1)
				for {
					old := atomic.LoadUint64(&words[1])
					if got, _ := r.CompareSwap(8, old, old+1); got == old {
						break
					}
				}
			}
		}()
	}
	wg.Wait()
	if words[0] != 40000 || words[1] != 20000 {
		t.Errorf("the words are %d and %d, want 40000 and 20000", words[0], words[1])
	}
}

// TestRemoteLastBytesLast: the last bytes of a write to another process are written by a call of their own.
func TestRemoteLastBytesLast(t *testing.T) {
	o := &owner{base: 100, mem: make([]byte, 100)}
	r := Region{Base: 100, Length: 100, Access: LocalWrite, Remote: o}
	for _, n := range []int{0, 3, 8, 20} {
		if err := r.WriteLast(100, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{3, 8, 12, 8}; !slices.Equal(o.writes, want) {
		t.Errorf("writes of %v bytes, want %v", o.writes, want)
	}
	o.block = true
	for name, err := range map[string]error{
		"read": r.Read(make([]byte, 1), 100), "write": r.Write(100, []byte{1}), "write last": r.WriteLast(100, []byte{1}),
	} {
		if !errors.Is(err, ErrBlock) {
			t.Errorf("%s: %v, want %v", name, err, ErrBlock)
		}
	}
}

// FuzzAccess: no address, length or key reaches outside a region.
func FuzzAccess(f *testing.F) {
	f.Add(uint64(0), uint64(10), uint64(0), uint64(10), uint32(0), uint32(63))
	f.Add(^uint64(0)-9, uint64(10), ^uint64(0), uint64(2), uint32(0), uint32(7))
	f.Fuzz(func(t *testing.T, base, length, addr, n uint64, key, access uint32) {
		length %= 1 << 16
		mem := make([]byte, length+16)
		tab := NewTable(4, nil)
		r, err := tab.Register(Region{PD: 1, Base: base, Length: length, Access: Access(access), Bytes: mem[8 : 8+length : 8+length]})
		if err != nil {
			return
		}
		s, err := tab.Remote(1, 1, r.Key^key, addr, n, RemoteRead)
		if err != nil || n == 0 {
			return
		}
		b := s.Region.Slice(s.Addr, n)
		if uint64(len(b)) != n {
			t.Fatalf("%d bytes of %d", len(b), n)
		}
		clear(b)
		_ = s.Region.Write(addr, make([]byte, min(n, 100)))
		_, _ = s.Region.FetchAdd(addr, 1)
	})
}

func BenchmarkRemote(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("%d regions", n), func(b *testing.B) {
			tab := NewTable(n, nil)
			keys := make([]uint32, n)
			for i := range keys {
				r, err := tab.Register(Region{PD: 1, Base: 4096, Length: 1 << 20, Access: rw, Remote: &owner{}})
				if err != nil {
					b.Fatal(err)
				}
				keys[i] = r.Key
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := tab.Remote(1, 5, keys[i], 8192, 4096, RemoteWrite); err != nil {
					b.Fatal(err)
				}
				if i += 7919; i >= n {
					i %= n
				}
			}
		})
	}
}

func BenchmarkWriteLast(b *testing.B) {
	mem := make([]byte, 1<<20)
	r := Region{Length: 1 << 20, Access: LocalWrite, Bytes: mem}
	src := make([]byte, 4096)
	b.SetBytes(4096)
	b.ReportAllocs()
	addr := uint64(0)
	for b.Loop() {
		if err := r.WriteLast(addr, src); err != nil {
			b.Fatal(err)
		}
		addr = (addr + 4096) % (1 << 20)
	}
}

func TestChecksDoNotAllocate(t *testing.T) {
	tab := NewTable(4, nil)
	r := region(t, tab, Region{PD: 1, Length: 100, Access: rw})
	src := make([]byte, 50)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = tab.Local(1, r.Key, 0, 10, LocalWrite)
		_, _ = tab.Remote(1, 1, r.Key, 0, 10, RemoteWrite)
		_, _ = tab.Remote(1, 1, r.Key+1, 0, 10, RemoteWrite)
		_ = r.WriteLast(0, src)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
