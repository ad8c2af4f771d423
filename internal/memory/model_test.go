package memory

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// naive is the table as the specification describes it: lists searched from end to end, and no sums that could
// overflow.
type naive struct {
	regions map[uint32]*naiveRegion
	windows map[uint32]*naiveWindow // by index
}

type naiveRegion struct {
	pd     PD
	base   uint64
	length uint64
	access Access
	bound  int
}

type naiveWindow struct {
	pd     PD
	typ    uint8
	key    uint32
	on     uint32 // key of the region; 0: unbound
	addr   uint64
	length uint64
	access Access
	qpn    uint32
}

// inside compares byte by byte, without sums.
func inside(start, length, addr, n uint64) bool {
	for i := range n {
		found := false
		for j := range length {
			if start+j == addr+i {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func (r *naiveRegion) start() uint64 {
	if r.access&ZeroBased != 0 {
		return 0
	}
	return r.base
}

func (m *naive) local(pd PD, key uint32, addr, n uint64, need Access) error {
	if n == 0 {
		return nil
	}
	r := m.regions[key]
	switch {
	case r == nil:
		return ErrKey
	case r.pd != pd:
		return ErrDomain
	case r.access&need != need:
		return ErrAccess
	case !inside(r.start(), r.length, addr, n):
		return ErrBounds
	}
	return nil
}

// remote returns the region and the address in it too.
func (m *naive) remote(pd PD, qpn, key uint32, addr, n uint64, need Access) (on uint32, at uint64, err error) {
	if n == 0 {
		return 0, 0, nil
	}
	if m.regions[key] != nil {
		return key, addr, m.local(pd, key, addr, n, need)
	}
	w := m.windows[key>>8]
	if w == nil || w.key != key || w.on == 0 {
		return 0, 0, ErrKey
	}
	start := w.addr
	if w.access&ZeroBased != 0 {
		start = 0
	}
	switch {
	case w.pd != pd || w.typ == 2 && w.qpn != qpn:
		return 0, 0, ErrDomain
	case w.access&need != need:
		return 0, 0, ErrAccess
	case !inside(start, w.length, addr, n):
		return 0, 0, ErrBounds
	}
	return w.on, w.addr + (addr - start), nil
}

func (m *naive) unbind(w *naiveWindow) {
	if w.on != 0 {
		m.regions[w.on].bound--
		w.on = 0
	}
}

// bind returns the class of error, or the new key.
func (m *naive) bind(b Bind) (uint32, error) {
	w := m.windows[b.Key>>8]
	switch {
	case w == nil:
		return 0, ErrKey
	case w.pd != b.PD:
		return 0, ErrDomain
	case b.Access&^(RemoteRead|RemoteWrite|RemoteAtomic|ZeroBased) != 0, w.typ == 1 && b.Access&ZeroBased != 0:
		return 0, errAttribute
	case w.typ == 1 && b.Key != w.key:
		return 0, ErrKey
	case w.typ == 2 && (w.on != 0 || b.Key == w.key):
		return 0, errState
	case w.typ == 2 && b.Length == 0:
		return 0, errAttribute
	}
	if b.Length == 0 {
		m.unbind(w)
		w.key = NextKey(w.key)
		return w.key, nil
	}
	need := WindowBind
	if b.Access&(RemoteWrite|RemoteAtomic) != 0 {
		need |= LocalWrite
	}
	if err := m.local(b.PD, b.LKey, b.Addr, b.Length, need); err != nil {
		return 0, err
	}
	m.unbind(w)
	m.regions[b.LKey].bound++
	w.on, w.addr, w.length, w.access, w.qpn = b.LKey, b.Addr, b.Length, b.Access, b.QPN
	if w.typ == 2 {
		w.key = b.Key
	} else {
		w.key = NextKey(w.key)
	}
	return w.key, nil
}

func (m *naive) invalidate(pd PD, qpn, key uint32) error {
	w := m.windows[key>>8]
	switch {
	case m.regions[key] != nil:
		return ErrAccess
	case w == nil || w.key != key:
		return ErrKey
	case w.typ == 1:
		return ErrAccess
	case w.on == 0:
		return ErrKey
	case w.pd != pd || w.qpn != qpn:
		return ErrDomain
	}
	m.unbind(w)
	return nil
}

var errAttribute = errors.New("attribute")

// class makes all AttributeErrors equal.
func class(err error) error {
	var ae *AttributeError
	if errors.As(err, &ae) {
		return errAttribute
	}
	return err
}

// TestTableAgainstModel: for any sequence of operations the table does what the naive model does.
func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := NewTable(12, nil)
		m := &naive{map[uint32]*naiveRegion{}, map[uint32]*naiveWindow{}}
		var keys []uint32 // every key that was ever used
		key := func() uint32 {
			if len(keys) == 0 || rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
				return rapid.Uint32().Draw(t, "key")
			}
			return rapid.SampledFrom(keys).Draw(t, "key")
		}
		pd := func() PD { return PD(rapid.IntRange(1, 2).Draw(t, "pd")) }
		qpn := func() uint32 { return uint32(rapid.IntRange(1, 2).Draw(t, "qpn")) }
		base := func() uint64 {
			return rapid.SampledFrom([]uint64{0, 8, 4096, 1 << 47, ^uint64(0) - 15}).Draw(t, "base")
		}
		near := func() uint64 { return base() + uint64(int64(rapid.IntRange(-3, 18).Draw(t, "off"))) }
		length := func() uint64 {
			return rapid.SampledFrom([]uint64{0, 1, 7, 8, 16, 17}).Draw(t, "length")
		}
		rights := func() Access { return Access(rapid.Uint32Range(0, 63).Draw(t, "access")) }
		same := func(what string, got, want error) {
			if class(got) != want {
				t.Fatalf("%s: %v, the model says %v", what, got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(*rapid.T) {
				r := Region{PD: pd(), Base: base(), Length: length(), Access: rights() | LocalWrite}
				if r.Length > 16 {
					r.Length = 16
				}
				r.Bytes = make([]byte, r.Length)
				got, err := tab.Register(r)
				if len(m.regions)+len(m.windows) == 12 {
					same("register", err, ErrFull)
					return
				}
				same("register", err, nil)
				if m.regions[got.Key] != nil || m.windows[got.Key>>8] != nil {
					t.Fatal("a key in use was handed out again")
				}
				m.regions[got.Key] = &naiveRegion{r.PD, r.Base, r.Length, r.Access, 0}
				keys = append(keys, got.Key)
			},
			"deregister": func(*rapid.T) {
				k := key()
				var want error
				switch r := m.regions[k]; {
				case r == nil:
					want = ErrKey
				case r.bound > 0:
					want = ErrBound
				}
				same("deregister", tab.Deregister(k), want)
				if want == nil {
					delete(m.regions, k)
				}
			},
			"window": func(*rapid.T) {
				typ := uint8(rapid.IntRange(0, 3).Draw(t, "type"))
				p := pd()
				w, err := tab.AllocWindow(p, typ)
				switch {
				case typ < 1 || typ > 2:
					same("window", err, errAttribute)
				case len(m.regions)+len(m.windows) == 12:
					same("window", err, ErrFull)
				default:
					same("window", err, nil)
					m.windows[w.Key()>>8] = &naiveWindow{pd: p, typ: typ, key: w.Key()}
					keys = append(keys, w.Key())
				}
			},
			"free window": func(*rapid.T) {
				k := key()
				w := m.windows[k>>8]
				if w == nil {
					same("free", tab.FreeWindow(k), ErrKey)
					return
				}
				same("free", tab.FreeWindow(k), nil)
				m.unbind(w)
				delete(m.windows, k>>8)
			},
			"bind": func(*rapid.T) {
				b := Bind{PD: pd(), QPN: qpn(), Key: key(), LKey: key(), Addr: near(), Length: length(), Access: rights() & 0x2e}
				if rapid.Bool().Draw(t, "next tag") {
					b.Key = NextKey(b.Key)
				}
				got, err := tab.Bind(b)
				want, wantErr := m.bind(b)
				same("bind", err, wantErr)
				if err == nil && got != want {
					t.Fatalf("bind: key %#x, the model says %#x", got, want)
				}
				if err == nil {
					keys = append(keys, got)
				}
			},
			"invalidate": func(*rapid.T) {
				p, q, k := pd(), qpn(), key()
				same("invalidate", tab.Invalidate(p, q, k), m.invalidate(p, q, k))
			},
			"release QP": func(*rapid.T) {
				q := qpn()
				tab.ReleaseQP(q)
				for _, w := range m.windows {
					if w.typ == 2 && w.qpn == q {
						m.unbind(w)
					}
				}
			},
			"local": func(*rapid.T) {
				p, k, a, n, need := pd(), key(), near(), length(), rights()&LocalWrite
				_, err := tab.Local(p, k, a, n, need)
				same("local", err, m.local(p, k, a, n, need))
			},
			"remote": func(*rapid.T) {
				p, q, k, a, n := pd(), qpn(), key(), near(), length()
				need := rapid.SampledFrom([]Access{RemoteRead, RemoteWrite, RemoteAtomic}).Draw(t, "need")
				s, err := tab.Remote(p, q, k, a, n, need)
				on, at, wantErr := m.remote(p, q, k, a, n, need)
				same("remote", err, wantErr)
				if err != nil || n == 0 {
					return
				}
				if s.Region.Key != on || s.Addr != at || uint64(len(s.Region.Slice(s.Addr, n))) != n {
					t.Fatalf("remote: %#x at %#x, the model says %#x at %#x", s.Region.Key, s.Addr, on, at)
				}
			},
			"": func(*rapid.T) {
				if tab.Len() != len(m.regions)+len(m.windows) {
					t.Fatalf("%d entries, the model has %d and %d", tab.Len(), len(m.regions), len(m.windows))
				}
				for k, r := range m.regions {
					if g := tab.region(k); g == nil || g.Windows() != r.bound {
						t.Fatalf("region %#x: other than %d bound windows", k, r.bound)
					}
				}
			},
		})
	})
}

// owner is an Accessor of a slice that stands for memory of another process.
type owner struct {
	base   uint64
	mem    []byte
	writes []int
	block  bool
}

func (o *owner) at(addr uint64, n int) ([]byte, error) {
	if addr < o.base || addr-o.base+uint64(n) > uint64(len(o.mem)) {
		return nil, ErrGone
	}
	return o.mem[addr-o.base:][:n], nil
}

func (o *owner) Read(dst []byte, addr uint64) error {
	b, err := o.at(addr, len(dst))
	copy(dst, b)
	return err
}

func (o *owner) Write(addr uint64, src []byte) error {
	b, err := o.at(addr, len(src))
	copy(b, src)
	o.writes = append(o.writes, len(src))
	return err
}

func (o *owner) Blocking() bool { return !o.block }

// TestMappedAndRemoteAgree: mapped and remote regions do the same reads, writes and atomics.
func TestMappedAndRemoteAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base, length = 0x10000, 64
		zero := Access(0)
		if rapid.Bool().Draw(t, "zero-based") {
			zero = ZeroBased
		}
		tab := NewTable(4, nil)
		words := make([]uint64, length/8)
		mem := make([]byte, 0)
		for range words {
			mem = append(mem, 0, 0, 0, 0, 0, 0, 0, 0)
		}
		far := &owner{base: base, mem: make([]byte, length)}
		a, err := tab.Register(Region{Base: base, Length: length, Access: LocalWrite | zero, Bytes: mem})
		if err != nil {
			t.Fatal(err)
		}
		b, err := tab.Register(Region{Base: base, Length: length, Access: LocalWrite | zero, Remote: far})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			addr := a.start() + uint64(int64(rapid.IntRange(-9, 70).Draw(t, "addr")))
			n := rapid.IntRange(0, 20).Draw(t, "n")
			src := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "src")
			x, y := rapid.Uint64Range(0, 2).Draw(t, "x"), rapid.Uint64Range(0, 2).Draw(t, "y")
			var e1, e2 error
			var o1, o2 uint64
			r1, r2 := make([]byte, n), make([]byte, n)
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				e1, e2 = a.Write(addr, src), b.Write(addr, src)
			case 1:
				e1, e2 = a.WriteLast(addr, src), b.WriteLast(addr, src)
			case 2:
				e1, e2 = a.Read(r1, addr), b.Read(r2, addr)
			case 3:
				o1, e1 = a.CompareSwap(addr, x, y)
				o2, e2 = b.CompareSwap(addr, x, y)
			case 4:
				o1, e1 = a.FetchAdd(addr, x)
				o2, e2 = b.FetchAdd(addr, x)
			}
			if !errors.Is(e1, e2) || o1 != o2 || !bytes.Equal(r1, r2) || !bytes.Equal(mem, far.mem) {
				t.Fatalf("at %#x: %v %v, %d %d\n%x\n%x", addr, e1, e2, o1, o2, mem, far.mem)
			}
		}
	})
}
