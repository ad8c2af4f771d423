package ibdump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/ndping"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

func running(t *testing.T) (socket string, adapters []config.Adapter) {
	t.Helper()
	const slow = "rate=200M" // slow enough for the capture to keep up
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Impairment: slow}, config.Adapter{Name: "right", Impairment: slow})
	d := driverbed.Start(t, cfg)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	return cfg.Socket, cfg.Adapters
}

// buffer is written by a tool while the test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func run(ctx context.Context, stdout, stderr io.Writer, args ...string) int {
	return Main(ctx, tool.Env{Name: "ibdump", Args: args, Stdout: stdout, Stderr: stderr})
}

// traffic runs ndrping between the adapters until the test ends.
func traffic(t *testing.T, socket string, adapters []config.Adapter) {
	t.Helper()
	t.Setenv("SOFTVPI_SOCKET", socket)
	var ping tool.Main
	for _, p := range ndping.Programs {
		if p.Name() == "ndrping" {
			ping = p.Main
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	start := func(args ...string) {
		wait.Go(func() {
			for ctx.Err() == nil {
				if ping(ctx, tool.Env{Name: "ndrping", Args: args, Stdout: io.Discard, Stderr: io.Discard}) == tool.Usage {
					t.Errorf("ndrping does not take %v", args)
					return
				}
			}
		})
	}
	addr := adapters[0].Address.String()
	start("-s", addr)
	start("-c", "-w", addr)
	t.Cleanup(func() { cancel(); wait.Wait() })
}

func count(t *testing.T, file io.Reader) (n int, missed uint64) {
	t.Helper()
	r, err := pcapgo.NewNgReader(file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	for ; ; n++ {
		if _, _, err := r.ReadPacketData(); errors.Is(err, io.EOF) {
			s, err := r.Interface(0)
			if err != nil {
				t.Fatal(err)
			}
			return n, s.Statistics.PacketsDropped
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A capture ends after the number of packets that was asked for, or when the user interrupts it. The file is complete
// then, and a line tells how many packets were captured and how many missed.
func TestEnds(t *testing.T) {
	socket, adapters := running(t)
	traffic(t, socket, adapters)
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		exit func(file string, cancel context.CancelFunc)
	}{
		{"count", []string{"-count", "25"}, nil},
		{"duration", []string{"-duration", "0.3"}, nil},
		{"interrupt", nil, func(file string, cancel context.CancelFunc) {
			for s, err := os.Stat(file); err != nil || s.Size() < 10000; s, err = os.Stat(file) {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, c.name+".pcapng")
			ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
			defer cancel()
			var stderr buffer
			if c.exit != nil {
				go c.exit(file, cancel)
			}
			if status := run(ctx, io.Discard, &stderr, append([]string{"-socket", socket, "-d", "right", "-w", file},
				c.args...)...); status != tool.Success {
				t.Fatalf("status %d: %s", status, stderr.String())
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n, missed := count(t, bytes.NewReader(b))
			if c.name == "count" && n != 25 || c.name == "interrupt" && n == 0 { // within a duration there may be no traffic
				t.Errorf("%d packets in the file; want 25 with -count, and some before an interrupt", n)
			}
			if want := fmt.Sprintf("%d packets captured, %d missed", n, missed); !strings.Contains(stderr.String(), want) {
				t.Errorf("printed %q, want %q", stderr.String(), want)
			}
		})
	}
}

func TestStandardOutput(t *testing.T) {
	socket, adapters := running(t)
	traffic(t, socket, adapters)
	var out, stderr buffer
	if status := run(t.Context(), &out, &stderr, "-socket", socket, "-w", "-", "-s", "-snaplen", "60", "-count",
		"10"); status != tool.Success || stderr.String() != "" {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	if n, _ := count(t, strings.NewReader(out.String())); n != 10 {
		t.Errorf("%d packets, want 10", n)
	}
}

// Bad arguments are refused in one line that names what is allowed, before anything is written.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-b", "40"}, "6"},
		{[]string{"-i", "2"}, "1"},
		{[]string{"-snaplen", "x"}, "0"},
		{[]string{"-w", ""}, "file to write"},
		{[]string{"-w", "-", "-file-size", "1"}, "file name"},
		{[]string{"-files", "3"}, "file-size"},
		{[]string{"--nothing"}, "--snaplen"},
		{[]string{"extra"}, "extra"},
	} {
		var stderr bytes.Buffer
		if status := run(t.Context(), io.Discard, &stderr, c.args...); status != tool.Usage {
			t.Errorf("%v: status %d, want %d", c.args, status, tool.Usage)
		}
		if s := stderr.String(); !strings.Contains(s, c.want) || strings.Count(s, "\n") != 1 {
			t.Errorf("%v: %q lacks %q, or is not one line", c.args, s, c.want)
		}
	}
	var stderr bytes.Buffer
	if status := run(t.Context(), io.Discard, &stderr, "-socket", filepath.Join(dir, "none")); status != tool.Failure ||
		!strings.Contains(stderr.String(), "softvpi up") {
		t.Errorf("no driver: status %d, %q", status, stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files after refused calls: %v, %v; want none", left, err)
	}
}

func TestUnknownAdapter(t *testing.T) {
	socket, _ := running(t)
	var stderr bytes.Buffer
	if status := run(t.Context(), io.Discard, &stderr, "-socket", socket, "-d", "middle"); status != tool.Usage ||
		!strings.Contains(stderr.String(), `"left", "right"`) {
		t.Errorf("status %d, %q; want wrong usage that names left and right", status, stderr.String())
	}
}
