package registry

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// TestConfiguration: device settings are found by their catalogue names. Those that no device has, and values that
// are not allowed, count as not set.
func TestConfiguration(t *testing.T) {
	r := NewVolatile("test")
	a, err := r.AddAdapter("left", catalogue.MLX4)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Configuration(a); len(got) != 0 {
		t.Errorf("%v is set at first, want nothing", got)
	}
	p, _ := catalogue.LookupParameter("NUM_OF_VFS")
	n := uint64(126)
	c, err := a.Configure(p, &n)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []Value{DWord("sriov_en", 1), DWord("LINK_TYPE_P1", 9), String("LINK_TYPE_P2", "2"), DWord("WOL_MAGIC_EN_P1", 1),
		DWord("more", 1)} {
		if err := r.Set(a.Configuration(), v); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Apply(c); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]uint64{"NUM_OF_VFS": 126, "SRIOV_EN": 1}, r.Configuration(a)); d != "" {
		t.Error("(-want +got):\n", d)
	}
	n = 127 // more than an mlx4 device has
	if _, err := a.Configure(p, &n); err == nil {
		t.Error("127 virtual functions were accepted")
	}
	for range 2 { // taking back what is not set is no error
		c, err := a.Configure(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[string]uint64{"SRIOV_EN": 1}, r.Configuration(a)); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestHostAddresses: the addresses of a host's interface are kept for the next start, and forgotten when there are none.
func TestHostAddresses(t *testing.T) {
	r := NewVolatile("test")
	a, err := r.AddAdapter("left", catalogue.MLX5)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]netip.Prefix{{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("fd00::1/64")}, nil, nil} {
		if err := r.Apply(a.KeepHostAddresses(want)); err != nil {
			t.Fatal(err)
		}
		if got := r.HostAddresses(a); !slices.Equal(got, want) {
			t.Errorf("%v are kept, want %v", got, want)
		}
	}
	if err := r.Set(a.Class(), Strings(hostAddresses, []string{"::1", "192.0.2.9/33", "192.0.2.9/30"})); err != nil {
		t.Fatal(err)
	}
	if got := r.HostAddresses(a); len(got) != 1 || got[0].String() != "192.0.2.9/30" {
		t.Errorf("%v of what others have written", got)
	}
}
