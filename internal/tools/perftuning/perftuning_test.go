package perftuning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/tuning"
)

// rig is a driver with three adapters: one and two are mlx4, three is mlx5.
type rig struct {
	t      *testing.T
	dir    string
	socket string
	driver *driver.Driver
}

func start(t *testing.T) *rig {
	t.Helper()
	cfg := driverbed.Config(t, config.Adapter{Name: "one", Generation: "mlx4"}, config.Adapter{Name: "two", Generation: "mlx4"},
		config.Adapter{Name: "three"})
	return &rig{t, filepath.Dir(cfg.Socket), cfg.Socket, driverbed.Start(t, cfg)}
}

func (g *rig) call(line string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	args := append([]string{"-socket", g.socket}, strings.Fields(line)...)
	status = Main(g.t.Context(), tool.Env{Name: "perf_tuning", Args: args, Stdout: &out, Stderr: &errs})
	return status, out.String(), errs.String()
}

func (g *rig) ok(line string) string {
	g.t.Helper()
	status, out, errs := g.call(line)
	if status != tool.Success || errs != "" {
		g.t.Fatalf("%s: status %d: %s", line, status, errs)
	}
	return out
}

// stored returns the keys of an adapter that are set in the registry.
func (g *rig) stored(adapter string) map[string]string {
	g.t.Helper()
	list, err := api.NewClient(g.socket).Settings(g.t.Context(), adapter)
	if err != nil {
		g.t.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range list {
		if s.Stored != nil && s.Status != "read only" {
			out[s.Name] = *s.Stored
		}
	}
	return out
}

// Each scenario sets what its table in the manual prints (WinOF 5.50, 4.9.1.6), besides the processors that it
// chooses.
func TestScenarios(t *testing.T) {
	streams := map[string]string{"SendCompletionMethod": "0", "RecvCompletionMethod": "2", "*ReceiveBuffers": "1024", "*RSSProfile": "4"}
	rss := "*RssBaseProcNumber *MaxRSSProcessors *NumRSSQueues *RssMaxProcNumber"
	three := "DefaultRecvRingProcessor TxInterruptProcessor TxForwardingProcessor " + rss
	for _, c := range []struct {
		line   string
		want   map[string]string
		chosen string
	}{
		{"-s -c1 one", streams, three},
		{"-st -c1 one", streams, three},
		{"-d -c1 one -c2 two", streams, "DefaultRecvRingProcessor TxForwardingProcessor " + rss},
		{"-f -c1 one -c2 two", map[string]string{"SendCompletionMethod": "1", "RecvCompletionMethod": "0", "*ReceiveBuffers": "4096",
			"UseRSSForRawIP": "0", "UseRSSForUDP": "0"}, three},
		{"-m -c1 one -b 0 -n 1", map[string]string{"*RssBaseProcNumber": "0", "*MaxRSSProcessors": "1"},
			"DefaultRecvRingProcessor TxInterruptProcessor"},
		{"-r -c1 one", map[string]string{
			"SendCompletionMethod": "1", "RecvCompletionMethod": "2", "*ReceiveBuffers": "1024", "UseRSSForRawIP": "1", "UseRSSForUDP": "1",
			"DefaultRecvRingProcessor": "-1", "TxInterruptProcessor": "-1", "TxForwardingProcessor": "-1", "*MaxRSSProcessors": "8",
			"*NumRSSQueues": "8",
		}, ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			g := start(t)
			if out := g.ok(c.line + " --dry-run"); !strings.Contains(out, "Nothing was changed") || len(g.stored("one")) != 0 {
				t.Errorf("--dry-run changed something, or does not say \"Nothing was changed\":\n%s", out)
			}
			out := g.ok(c.line)
			if !strings.Contains(out, "at restart") || strings.Contains(out, "stored only") {
				t.Error("want all keys to act at a restart:\n", out)
			}
			got := g.stored("one")
			for _, k := range strings.Fields(c.chosen) {
				if got[k] == "" {
					t.Errorf("%s is not set", k)
				}
				delete(got, k)
			}
			for k, v := range c.want {
				if w := g.stored("one")[k]; w != v {
					t.Errorf("%s is %q, want %q", k, w, v)
				}
				delete(got, k)
			}
			if len(got) > 0 {
				t.Errorf("the scenario also sets %v", got)
			}
			if out := g.ok(c.line); !strings.Contains(out, "Everything is already set this way") {
				t.Errorf("the same scenario again, want that everything is set already:\n%s", out)
			}
		})
	}
}

// InfiniBand adapters have a default of their own, and -st is for Ethernet adapters alone (WinOF 5.50, 4.9.1.6).
func TestInfiniBand(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "eth", Generation: "mlx4"}, config.Adapter{Name: "ib", Generation: "mlx4",
		Link: "cable"})
	g := &rig{t, filepath.Dir(cfg.Socket), cfg.Socket, driverbed.Start(t, cfg)}
	g.ok("-r -c1 ib -c2 eth")
	for adapter, want := range map[string]string{"ib": "0", "eth": "1"} {
		if got := g.stored(adapter)["SendCompletionMethod"]; got != want {
			t.Errorf("-r sets SendCompletionMethod of %s to %q, want %s", adapter, got, want)
		}
	}
	before := g.stored("eth")
	for _, line := range []string{"-st -c1 ib", "-st -c1 eth -c2 ib"} {
		status, _, errs := g.call(line)
		if status != tool.Usage || !strings.Contains(errs, `adapters is "ib", which is InfiniBand; allowed: Ethernet adapters`) {
			t.Errorf("%s: status %d, %s; want %d and that ib is InfiniBand", line, status, errs, tool.Usage)
		}
	}
	if d := cmp.Diff(before, g.stored("eth")); d != "" {
		t.Error("what was refused changed eth (-want +got):\n", d)
	}
}

// -s gives the second adapter the defaults, and --undo takes the changes of each adapter back step by step.
func TestUndo(t *testing.T) {
	g := start(t)
	if _, err := api.NewClient(g.socket).Set(t.Context(), "two", "*ReceiveBuffers", "512"); err != nil {
		t.Fatal(err)
	}
	before := g.stored("two")
	g.ok("-f -c1 one -c2 two")
	forwarding := g.stored("two")
	g.ok("-s -c1 one -c2 two")
	if s := g.stored("two"); s["SendCompletionMethod"] != "1" || s["*ReceiveBuffers"] != "1024" || s["*RssMaxProcNumber"] != "" {
		t.Errorf("after -s, two has %v", s)
	}
	g.ok("--undo -c1 two")
	if d := cmp.Diff(forwarding, g.stored("two")); d != "" {
		t.Error("after the first --undo (-want +got):\n", d)
	}
	g.ok("--undo -c1 two")
	if d := cmp.Diff(before, g.stored("two")); d != "" {
		t.Error("after the second --undo (-want +got):\n", d)
	}
	if status, _, errs := g.call("--undo -c1 two"); status != tool.Failure || !strings.Contains(errs, "left to undo") {
		t.Errorf("a third --undo: status %d, %s; want %d and \"left to undo\"", status, errs, tool.Failure)
	}
	g.ok("--undo -c1 one")
	g.ok("--undo -c1 one")
	if s := g.stored("one"); len(s) != 0 {
		t.Errorf("after --undo, one has %v, want nothing", s)
	}
}

// A change that the user has taken back by hand is still undone, so that the one before it can be undone too.
func TestUndoOfWhatIsUndone(t *testing.T) {
	g := start(t)
	g.ok("-r -c1 one")
	was := g.stored("one")
	g.ok("-m -c1 one -b 0 -n 1")
	client := api.NewClient(g.socket)
	for key := range g.stored("one") {
		var err error
		if value, ok := was[key]; ok {
			_, err = client.Set(t.Context(), "one", key, value)
		} else {
			_, err = client.Reset(t.Context(), "one", key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	g.ok("--undo -c1 one")
	if d := cmp.Diff(was, g.stored("one")); d != "" {
		t.Error("after the first --undo (-want +got):\n", d)
	}
	g.ok("--undo -c1 one")
	if s := g.stored("one"); len(s) != 0 {
		t.Errorf("after the second --undo, one has %v, want nothing", s)
	}
}

func TestJSONAndMissingKeys(t *testing.T) {
	g := start(t)
	var o tuning.Outcome
	if err := json.Unmarshal([]byte(g.ok("-s -c1 three --json")), &o); err != nil {
		t.Fatal(err)
	}
	if !o.Changed || o.Scenario != "single" || len(o.Missing) != 3 ||
		o.Missing[0] != (tuning.Missing{Adapter: "three", Generation: "mlx5", Key: "DefaultRecvRingProcessor"}) || len(o.Changes) != 8 {
		t.Errorf("printed %+v; want 8 changes and 3 missing keys", o)
	}
	if g.stored("three")["RecvCompletionMethod"] != "2" {
		t.Errorf("three has %v, want RecvCompletionMethod 2", g.stored("three"))
	}
}

// If the log cannot be written nothing is changed, because the change could not be undone.
func TestNoLogNoChange(t *testing.T) {
	g := start(t)
	if err := os.WriteFile(filepath.Join(g.dir, "state", "LogFiles"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := g.call("-s -c1 one"); status != tool.Failure || !strings.Contains(errs, "log: ") || len(g.stored("one")) != 0 {
		t.Errorf("status %d, %s, stored %v; want a failure that names the log, and nothing stored", status, errs, g.stored("one"))
	}
}

func TestRefusals(t *testing.T) {
	g := start(t)
	for line, want := range map[string]string{
		"": "the scenario is missing", "-s": "-c1 is missing", "-d -c1 one": "-c2", "-f -c1 one": "-c2", "-m -c1 one": "-b",
		"-m -c1 one -b 0":              "-n",
		"-m -c1 one -c2 two -b 0 -n 1": "-c2", "-s -c1 one -b 0": "only with -m", fmt.Sprintf("-m -c1 one -b %d -n 2",
			min(runtime.NumCPU()-1, tuning.MostProcessor)): "allowed: 1 to 1", "-s -d -c1 one": "exclude",
		"-s -c1 four": `"one"`, "-s -c1 one -c2 ONE": "the same", "-s -c1 one more": "more", "-z": "-z", "-m -c1 one -b -1 -n 1": "0 to 63",
	} {
		status, out, errs := g.call(line)
		if status != tool.Usage || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("%s: status %d, %q %q; want %d and %q", line, status, out, errs, tool.Usage, want)
		}
	}
}
