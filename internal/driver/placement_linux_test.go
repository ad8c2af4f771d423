package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	machine "github.com/softvpi/softvpi/internal/os/processors"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// boundTo reports whether a thread of this process runs on these processors only.
func boundTo(t *testing.T, list []int) bool {
	t.Helper()
	want := strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // the thread may have ended
		if strings.Contains(string(b), "Cpus_allowed_list:\t"+want+"\n") {
			return true
		}
	}
	return false
}

// TestPlacementKeys: the keys that place queues choose their processors, and the thread that serves them runs on these, or on those
// of TxForwardingProcessor and TxInterruptProcessor, which it is for; by default it runs anywhere (WinOF 5.50, 4.1.13.2 and
// 4.6.5). Which processors the keys choose of larger machines, package rss tests.
func TestPlacementKeys(t *testing.T) {
	t.Parallel()
	all := machine.List()
	if len(all) < 2 || all[0].Number != 0 || all[1].Number != 1 {
		t.Skip("it takes a machine whose processors 0 and 1 this process may use")
	}
	cfg := overSockets(t)[0]
	withGuest(t, &cfg, "02:00:00:00:00:01")
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	look := func(name string, queues, loop []int) {
		t.Helper()
		s := d.Status().Adapters[0].Ethernet
		var got []int
		for _, r := range s.Rings {
			got = append(got, r.Processor)
		}
		if !slices.Equal(got, queues) || !slices.Equal(s.Loop, loop) {
			t.Errorf("%s: queues on processors %v, served on %v, want %v and %v", name, got, s.Loop, queues, loop)
		}
		if _, refused := d.host.LoopProcessors(); refused != nil {
			t.Error(name, refused)
		}
		if len(loop) > 0 {
			await.Eventually(t, name+": the thread is bound", func() bool { return boundTo(t, loop) })
		}
	}
	set(t, d, "port", "*MaxRSSProcessors", "2")
	restart(t, d, "port")
	both := []int(nil)
	if len(all) > 2 {
		both = []int{0, 1}
	}
	look("two processors", []int{0, 1}, both)
	for _, c := range []struct {
		key, value   string
		queues, loop []int
	}{
		{"*MaxRSSProcessors", "1", []int{0}, []int{0}},
		{"*RssBaseProcNumber", "1", []int{1}, []int{1}},
		{"RssBaseCpu", "1", []int{1}, []int{1}},
		{"MaxNumRssCpus", "1", []int{0}, []int{0}},
		{"*RssMaxProcNumber", "0", []int{0}, []int{0}},
		{"*RssBaseProcGroup", "1", []int{0}, []int{0}}, // there is none: the first processor
		{"*NumaNodeID", fmt.Sprint(all[1].Node), []int{0, 1}, both},
		{"TxForwardingProcessor", "1", []int{0, 1}, []int{1}},
		{"TxInterruptProcessor", "1", []int{0, 1}, []int{1}},
	} {
		set(t, d, "port", "*MaxRSSProcessors", "2")
		set(t, d, "port", c.key, c.value)
		if len(all) > 2 && c.key == "*RssBaseProcNumber" {
			set(t, d, "port", "*MaxRSSProcessors", "1")
		}
		restart(t, d, "port")
		look(c.key, c.queues, c.loop)
		if _, err := d.Set("port", c.key, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(t, d, "port", "*MaxRSSProcessors", "2")
	restart(t, d, "port")
	look("without keys", []int{0, 1}, both)
}
