package memory

import (
	"errors"
	"math"
	"testing"
)

const rw = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic | WindowBind

func region(t *testing.T, tab *Table, r Region) *Region {
	t.Helper()
	if r.Bytes == nil && r.Remote == nil {
		r.Bytes = make([]byte, r.Length)
	}
	got, err := tab.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestAccessChecks: an access is checked for key, protection domain, rights and bounds, in that order (IBA 10.6.4,
// 9.4.3).
func TestAccessChecks(t *testing.T) {
	const base, length = 0x7000_0000_1003, 100
	tests := []struct {
		name    string
		r       Region
		pd      PD
		addr, n uint64
		need    Access
		tag     uint32 // XORed into the key
		err     error
	}{
		{"whole", Region{Access: rw}, 1, base, length, RemoteWrite, 0, nil},
		{"first byte", Region{Access: rw}, 1, base, 1, RemoteRead, 0, nil},
		{"last byte", Region{Access: rw}, 1, base + length - 1, 1, RemoteRead, 0, nil},
		{"one before", Region{Access: rw}, 1, base - 1, 1, RemoteRead, 0, ErrBounds},
		{"one past", Region{Access: rw}, 1, base + length, 1, RemoteRead, 0, ErrBounds},
		{"runs past", Region{Access: rw}, 1, base + 1, length, RemoteRead, 0, ErrBounds},
		{"straddles start", Region{Access: rw}, 1, base - 1, 2, RemoteRead, 0, ErrBounds},
		{"sum overflows", Region{Access: rw}, 1, base + 1, math.MaxUint64, RemoteRead, 0, ErrBounds},
		{"wraps round", Region{Access: rw}, 1, math.MaxUint64, base + 2, RemoteRead, 0, ErrBounds},
		{"stale tag", Region{Access: rw}, 1, base, 1, RemoteRead, 1, ErrKey},
		{"other index", Region{Access: rw}, 1, base, 1, RemoteRead, 1 << 8, ErrKey},
		{"huge index", Region{Access: rw}, 1, base, 1, RemoteRead, 0xffffff00, ErrKey},
		{"other domain", Region{Access: rw}, 2, base, 1, RemoteRead, 0, ErrDomain},
		{"no right", Region{Access: LocalWrite | RemoteRead}, 1, base, 1, RemoteWrite, 0, ErrAccess},
		{"no atomic", Region{Access: LocalWrite | RemoteWrite}, 1, base, 8, RemoteAtomic, 0, ErrAccess},
		{"right before bounds", Region{Access: LocalWrite}, 1, base - 1, 1, RemoteWrite, 0, ErrAccess},
		{"zero-based first", Region{Access: rw | ZeroBased}, 1, 0, length, RemoteRead, 0, nil},
		{"zero-based past", Region{Access: rw | ZeroBased}, 1, length, 1, RemoteRead, 0, ErrBounds},
		{"zero-based by address", Region{Access: rw | ZeroBased}, 1, base, 1, RemoteRead, 0, ErrBounds},
		{"length 0 checks nothing", Region{}, 9, 0, 0, RemoteWrite, 0xffff, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tab := NewTable(10, nil)
			tt.r.PD, tt.r.Base, tt.r.Length = 1, base, length
			r := region(t, tab, tt.r)
			s, err := tab.Remote(tt.pd, 5, r.Key^tt.tag, tt.addr, tt.n, tt.need)
			if !errors.Is(err, tt.err) {
				t.Errorf("Remote: %v, want %v", err, tt.err)
			}
			l, err := tab.Local(tt.pd, r.Key^tt.tag, tt.addr, tt.n, tt.need)
			if !errors.Is(err, tt.err) {
				t.Errorf("Local: %v, want %v", err, tt.err)
			}
			if tt.err == nil && (s.Region == nil || l == nil) {
				t.Fatal("no region for a good access")
			}
			if tt.err == nil && uint64(len(s.Region.Slice(s.Addr, tt.n))) != tt.n {
				t.Errorf("slice has %d bytes, want %d", len(s.Region.Slice(s.Addr, tt.n)), tt.n)
			}
		})
	}
}

func TestRegisterRefuses(t *testing.T) {
	tests := []struct {
		name string
		r    Region
	}{
		{"unknown right", Region{Access: 1 << 7}},
		{"remote write without local write", Region{Access: RemoteWrite}},
		{"remote atomic without local write", Region{Access: RemoteAtomic}},
		{"end past 64 bits", Region{Base: math.MaxUint64, Length: 2, Bytes: make([]byte, 2)}},
		{"mapped memory too short", Region{Length: 2, Bytes: make([]byte, 1)}},
	}
	for _, tt := range tests {
		var ae *AttributeError
		if _, err := NewTable(4, nil).Register(tt.r); !errors.As(err, &ae) {
			t.Errorf("%s: %v, want an AttributeError", tt.name, err)
		}
	}
	if _, err := NewTable(4, nil).Register(Region{Base: math.MaxUint64, Length: 1, Bytes: make([]byte, 1)}); err != nil {
		t.Errorf("region ending at 2^64: %v", err)
	}
}

// TestKeysAreNotReusedSoon: a key returns with another tag, and not before the rest of the table was used.
func TestKeysAreNotReusedSoon(t *testing.T) {
	tab := NewTable(100, func() uint8 { return 7 })
	seen := map[uint32]bool{}
	for range 200 {
		r := region(t, tab, Region{})
		if seen[r.Key] {
			t.Fatalf("key %#x again", r.Key)
		}
		seen[r.Key] = true
		if err := tab.Deregister(r.Key); err != nil {
			t.Fatal(err)
		}
	}
	if tab.Len() != 0 {
		t.Errorf("%d left", tab.Len())
	}
}

func TestTableFull(t *testing.T) {
	tab := NewTable(3, nil)
	var last *Region
	for range 3 {
		last = region(t, tab, Region{})
	}
	if _, err := tab.Register(Region{}); !errors.Is(err, ErrFull) {
		t.Errorf("fourth: %v", err)
	}
	if err := tab.Deregister(last.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.AllocWindow(1, 1); err != nil {
		t.Errorf("after one left: %v", err)
	}
}

// TestDeregisterInUse: whoever still holds a deregistered region sees that it is dead and can no longer reach its
// memory.
func TestDeregisterInUse(t *testing.T) {
	tab := NewTable(3, nil)
	r := region(t, tab, Region{Access: rw, Length: 8})
	if err := tab.Deregister(r.Key); err != nil {
		t.Fatal(err)
	}
	if !r.Dead() {
		t.Error("a deregistered region is not dead")
	}
	if err := r.Write(0, []byte{1}); !errors.Is(err, ErrGone) {
		t.Errorf("write: %v", err)
	}
	if _, err := r.FetchAdd(0, 1); !errors.Is(err, ErrGone) {
		t.Errorf("atomic: %v", err)
	}
	if err := tab.Deregister(r.Key); !errors.Is(err, ErrKey) {
		t.Errorf("twice: %v", err)
	}
}

// TestReplace: a region that replaces another has its key, and whoever still holds the other sees that it is dead. One
// with a window bound to it stays (IBA 11.2.8.7).
func TestReplace(t *testing.T) {
	tab := NewTable(3, nil)
	r := region(t, tab, Region{PD: 1, Access: rw, Length: 8})
	n, err := tab.Replace(r.Key, Region{PD: 2, Base: 100, Length: 16, Bytes: make([]byte, 16), Access: LocalWrite | WindowBind})
	if err != nil || n.Key != r.Key || !r.Dead() || n.Dead() || tab.Len() != 1 {
		t.Fatalf("%+v, %v; want the key %#x, and the first region dead", n, err, r.Key)
	}
	if _, err := tab.Local(1, r.Key, 100, 1, 0); !errors.Is(err, ErrDomain) {
		t.Errorf("in the first domain: %v", err)
	}
	if got, err := tab.Local(2, r.Key, 108, 8, LocalWrite); err != nil || got != n {
		t.Errorf("in the second domain: %v", err)
	}
	w, err := tab.AllocWindow(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Bind(Bind{PD: 2, Key: w.Key(), LKey: n.Key, Addr: 100, Length: 8, Access: RemoteRead}); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Replace(n.Key, Region{}); !errors.Is(err, ErrBound) || n.Dead() {
		t.Errorf("with a window: %v", err)
	}
	if _, err := tab.Replace(n.Key, Region{Access: RemoteWrite}); !errors.As(err, new(*AttributeError)) || n.Dead() {
		t.Errorf("by impossible attributes: %v", err)
	}
	if _, err := tab.Replace(n.Key+1, Region{}); !errors.Is(err, ErrKey) {
		t.Errorf("an unknown key: %v", err)
	}
}
