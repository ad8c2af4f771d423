package typeperf

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// fake is a driver with two adapters; each reading finds more packets than the one before.
type fake struct {
	*api.Client
	packets atomic.Uint64
}

func newFake() *fake {
	f := &fake{}
	f.Client = server.New(server.Config{Counters: collector.New(collector.Config{Read: func() []collector.Adapter {
		out := make([]collector.Adapter, 2)
		for i, name := range []string{"Ethernet 1", "Ethernet 2"} {
			out[i].Counters = device.Counters{Adapter: uint32(i), Name: name, Enabled: true}
		}
		out[0].RDMA.SentFrames = f.packets.Add(10)
		out[0].Transport.Probes = 7
		return out
	}})}).Local()
	return f
}

// run runs the tool and checks that it prints an error message exactly if its status is not 0.
func run(t *testing.T, f *fake, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	status = Main(ctx, tool.Env{Name: "softvpi counters", Args: args, Stdout: &stdout, Stderr: &stderr}, func(string) Driver { return f })
	if (status == 0) != (stderr.Len() == 0) {
		t.Errorf("%v: status %d with the error message %q", args, status, stderr.String())
	}
	return status, stdout.String(), stderr.String()
}

func TestWatchWritesTypeperfsCSV(t *testing.T) {
	_, out, _ := run(t, newFake(), "watch", `\RDMA Activity(*)\RDMA Outbound Frames/sec`, "-si", "0.02", "-sc", "3",
		`\RDMA Activity(Ethernet 2)\RDMA Active Connections`)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%v, want 4 rows:\n%s", err, out)
	}
	host, _ := os.Hostname()
	want := []string{
		"(PDH-CSV 4.0)", `\\` + host + `\RDMA Activity(Ethernet 1)\RDMA Outbound Frames/sec`,
		`\\` + host + `\RDMA Activity(Ethernet 2)\RDMA Active Connections`, `\\` + host +
			`\RDMA Activity(Ethernet 2)\RDMA Outbound Frames/sec`,
	}
	if strings.Join(rows[0], ",") != strings.Join(want, ",") {
		t.Errorf("the header is %q, want %q", rows[0], want)
	}
	for _, r := range rows[1:] {
		if !regexp.MustCompile(`^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d\.\d{3},[1-9]\d*\.\d{6},0\.000000,0\.000000$`).MatchString(strings.Join(r,
			",")) {
			t.Errorf("row %q, want a time, a rate above 0 and two zeros", r)
		}
	}
}

func TestGet(t *testing.T) {
	_, out, _ := run(t, newFake(), "get", "transport(Ethernet 1).probes", "adapter_qos(*Untagged).sent_discarded_frames",
		"adapter_traffic(* 1).received_symbol_error_packets")
	want := "Mellanox Adapter Traffic Counters (Ethernet 1)\n" +
		"  Packets Received with Symbol Error                - packets\n" +
		"Mellanox Adapter QoS Counters (Ethernet 1, Untagged)\n" +
		"  Sent Discard Frames                               0 frames\n" +
		"Mellanox Adapter QoS Counters (Ethernet 2, Untagged)\n" +
		"  Sent Discard Frames                               0 frames\n" +
		"SoftVPI Transport (Ethernet 1)\n" +
		"  Probes                                            7 packets\n"
	if out != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
	var line struct{ Readings []counters.Reading }
	_, out, _ = run(t, newFake(), "get", "-json", "-si", "0.02", "rdma_activity(Ethernet 1).outbound_frames")
	if err := json.Unmarshal([]byte(out), &line); err != nil || len(line.Readings) != 1 || line.Readings[0].Value.Real <= 0 {
		t.Errorf("JSON: %v, want one reading above 0: %s", err, out)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	paths, out := filepath.Join(dir, "paths"), filepath.Join(dir, "out")
	if err := os.WriteFile(paths, []byte("\"\\RDMA Activity(*)\\RDMA Active Connections\"\r\n\ntransport.probes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"watch", "-cf", paths, "-o", out, "-sc", "1", "-si", "0.01", "-f", "TSV"}
	if status, text, _ := run(t, newFake(), args...); status != 0 || text != "" {
		t.Errorf("status %d, printed %q; want 0 and nothing", status, text)
	}
	b, err := os.ReadFile(out)
	if err != nil || strings.Count(string(b), "\n") != 2 || strings.Count(string(b), "\t") != 8 {
		t.Errorf("%v, the file is %q; want 2 lines of 5 fields", err, b)
	}
	if status, _, errs := run(t, newFake(), args...); status != 1 || !strings.Contains(errs, "-y") {
		t.Errorf("a file that is there: status %d, %s; want 1 and a hint at -y", status, errs)
	}
	if status, _, _ := run(t, newFake(), append(args, "-y")...); status != 0 {
		t.Error("-y does not replace the file")
	}
}

func TestListAndReset(t *testing.T) {
	f := newFake()
	_, out, _ := run(t, f, "list", "SoftVPI Transport")
	if !strings.HasPrefix(out, "SoftVPI Transport (transport)\n  instances: Ethernet 1; Ethernet 2\n") ||
		!regexp.MustCompile(`\n  Probes +probes +total, packets\n`).MatchString(out) {
		t.Error("list of a set, want its instances and counters:\n", out)
	}
	_, out, _ = run(t, f, "list", "-x", "rdma_activity")
	if !strings.HasPrefix(out, `\RDMA Activity(Ethernet 1)\RDMA Accepted Connections`+"\n") || strings.Count(out, "\n") != 20 {
		t.Error("list -x, want 20 paths of counters:\n", out)
	}
	run(t, f, "reset", "transport", "-adapter", "Ethernet 1")
	if _, out, _ = run(t, f, "get", "transport(Ethernet 1).probes"); !strings.Contains(out, " 0 packets") {
		t.Error("after the reset, want 0 packets:\n", out)
	}
}

func TestBadUsage(t *testing.T) {
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, ": a command is missing; allowed: list, get, watch, reset", []string{}},
		{2, "list, get, watch, reset", []string{"nonsense"}},
		{2, "no such counter set; allowed: Mellanox Adapter Traffic Counters", []string{"get", `\Nonsense(*)\*`}},
		{2, "no such counter in the set", []string{"watch", `\RDMA Activity(*)\Nonsense`}},
		{1, "no adapter has such an instance", []string{"get", `\RDMA Activity(Ethernet 9)\*`}},
		{2, "[[hh:]mm:]ss", []string{"watch", "-si", "0"}},
		{2, "[[hh:]mm:]ss", []string{"watch", "-si", "1:60"}},
		{2, "allowed: csv, tsv, json, text", []string{"watch", "-f", "bin"}},
		{2, "a number from 1", []string{"watch", "-sc", "0"}},
		{2, "only a restart", []string{"reset", "adapter_traffic"}},
		{2, "one counter set", []string{"reset"}},
		{2, "allowed:", []string{"get", "-nonsense"}},
	} {
		if status, _, errs := run(t, newFake(), c.args...); status != c.status || !strings.Contains(errs, c.says) {
			t.Errorf("%q: status %d, %s; want %d and %q", c.args, status, errs, c.status, c.says)
		}
	}
}

func TestParseInterval(t *testing.T) {
	for s, want := range map[string]time.Duration{"5": 5 * time.Second, "90": 90 * time.Second, "2:30": 150 * time.Second,
		"1:00:01": 3601 * time.Second, "0.5": time.Second / 2} {
		if got, err := parseInterval(s); err != nil || got != want {
			t.Errorf("%s is read as %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", ":", "-1", "1m", "1:2:3:4", "1.5:00", "1e3", "999999999", "1:99"} {
		if d, err := parseInterval(s); err == nil {
			t.Errorf("%s is read as %v, want an error", s, d)
		}
	}
}
