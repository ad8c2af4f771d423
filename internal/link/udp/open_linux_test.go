package udp

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// TestFailedOpenClosesItsOwn: a link that cannot be opened closes the descriptors it has opened and no others.
func TestFailedOpenClosesItsOwn(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		cfg := v.cfg
		cfg.Addr, cfg.Port = a.Status().Addr.Addr(), a.Status().Addr.Port()
		descriptors := func() map[string]string {
			all := map[string]string{}
			entries, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not the descriptor of the directory
					all[e.Name()] = strings.TrimSuffix(to, " (deleted)") // some files of /proc get this suffix in time
				}
			}
			return all
		}
		before := descriptors()
		for range 3 {
			if l, err := Open(cfg); err == nil {
				l.Close()
				t.Fatal("an address that is in use was opened again")
			}
		}
		if after := descriptors(); !maps.Equal(after, before) {
			t.Errorf("descriptors %v, want those before, %v", after, before)
		}
	})
}
