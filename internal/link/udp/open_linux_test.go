package udp

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// A link that cannot be opened closes what it has opened and nothing else: no descriptor of somebody else's, the first of all.
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
				if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not that of the directory
					all[e.Name()] = strings.TrimSuffix(to, " (deleted)") // as some of /proc are in time
				}
			}
			return all
		}
		before := descriptors()
		for range 3 {
			if l, err := Open(cfg); err == nil {
				l.Close()
				t.Fatal("an address can be taken twice")
			}
		}
		if after := descriptors(); !maps.Equal(after, before) {
			t.Errorf("descriptors %v, want those before, %v", after, before)
		}
	})
}
