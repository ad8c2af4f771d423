package fabric

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/wire/mad"
)

// TestMKey: which requests are answered with which protection level and M_Key, and that a wrong M_Key is counted (IBA
// 14.2.4).
func TestMKey(t *testing.T) {
	for _, c := range []struct {
		protect     uint8
		right       bool
		reads, sets bool
		shown       bool
	}{
		{0, false, true, false, true},
		{1, false, true, false, false},
		{2, false, false, false, false},
		{3, false, false, false, false},
		{0, true, true, true, true},
		{1, true, true, true, true},
		{2, true, true, true, true},
		{3, true, true, true, true},
	} {
		r := small(t)
		r.mustChange(1, func(i *mad.PortInfo) { i.MKey, i.MKeyProtectBits = 5, c.protect }, 1, 1)
		if c.right {
			r.mkey = 5
		}
		a, ok := r.try(mad.NewSMP(mad.MethodGet, mad.AttrPortInfo, 1, 0), 1, 1)
		if i, _ := mad.ParsePortInfo(a.Data[:]); ok != c.reads || ok && (i.MKey != 0) != c.shown {
			t.Errorf("protection %d, right %v: read %v, M_Key %d", c.protect, c.right, ok, i.MKey)
		}
		if _, ok := r.try(mad.NewSMP(mad.MethodSet, mad.AttrPKeyTable, 0, 0), 1, 1); ok != c.sets {
			t.Errorf("protection %d, right %v: set %v", c.protect, c.right, ok)
		}
		r.mkey = 5
		want := uint16(0)
		if !c.reads {
			want++
		}
		if !c.sets {
			want++
		}
		if got := r.portInfo(1, 1, 1).MKeyViolations; got != want {
			t.Errorf("protection %d, right %v: %d violations, want %d", c.protect, c.right, got, want)
		}
	}
}

// TestMKeyLease: the lease period starts with a violation, ends the protection when it has expired, and stops when a
// request with the right M_Key comes (IBA 14.2.4.2).
func TestMKeyLease(t *testing.T) {
	r := small(t)
	r.mustChange(1, func(i *mad.PortInfo) { i.MKey, i.MKeyProtectBits, i.MKeyLeasePeriod = 5, 2, 10 }, 1, 1)
	read := func() bool {
		_, ok := r.try(mad.NewSMP(mad.MethodGet, mad.AttrPortInfo, 1, 0), 1, 1)
		return ok
	}
	r.now = r.now.Add(time.Hour)
	if read() {
		t.Fatal("the lease ran without a violation")
	}
	r.now = r.now.Add(9 * time.Second)
	if read() {
		t.Fatal("the lease ended early")
	}
	r.mkey = 5
	read()
	r.mkey = 0
	r.now = r.now.Add(time.Hour)
	if read() {
		t.Fatal("the right M_Key did not stop the lease")
	}
	r.now = r.now.Add(10 * time.Second)
	if !read() {
		t.Error("the lease does not expire")
	}
}
