package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// fake is a driver that answers from an event log of the test.
type fake struct {
	*api.Client
	log *events.Log
}

func newFake(t *testing.T) *fake {
	f := &fake{log: events.Open(events.Config{Directory: t.TempDir()})}
	t.Cleanup(func() { _ = f.log.Close() })
	f.Client = server.New(server.Config{Events: f.log}).Local()
	return f
}

func run(f *fake, args ...string) (status int, out, errs string) {
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	status = Main(ctx, tool.Env{Name: "softvpi events", Args: args, Stdout: &stdout, Stderr: &stderr}, func(string) Driver { return f })
	return status, stdout.String(), stderr.String()
}

func TestList(t *testing.T) {
	f := newFake(t)
	f.log.Raise(0, events.DriverStarted{Version: "1", PID: 2, Adapters: 3})
	f.log.Raise(0, events.LinkDown{Adapter: "Ethernet 1", Port: 1})
	f.log.Raise(catalogue.MLX4, events.LinkUp{Adapter: "Ethernet 2", Port: 1})
	_, out, _ := run(f, "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[1], "  Warning     mlx5       0x8008  Ethernet 1: the link is down. The cable or the interface may be gone, or the other end may be down.") {
		t.Errorf("printed %q; want 3 lines, the second about the link of Ethernet 1", lines)
	}
	for _, c := range []struct {
		args []string
		want string // symbols of the events that are listed
	}{
		{[]string{"-severity", "warning"}, "LinkDown"},
		{[]string{"-severity", "warning,information"}, "DriverStarted LinkDown LinkUp"},
		{[]string{"-source", "MLX5", "-source", "softvpi"}, "DriverStarted LinkDown"},
		{[]string{"-id", "0x8008"}, "LinkDown LinkUp"}, // two sources have an event with this ID
		{[]string{"-id", "1"}, "DriverStarted"},
		{[]string{"-adapter", "Ethernet 2"}, "LinkUp"},
		{[]string{"-n", "1"}, "LinkUp"},
		{[]string{"-since", "1h"}, "DriverStarted LinkDown LinkUp"},
		{[]string{"-until", "1h"}, ""},
		{[]string{"-since", "2100-01-01"}, ""},
	} {
		_, out, errs := run(f, append([]string{"list", "-json"}, c.args...)...)
		var got []string
		for d := json.NewDecoder(strings.NewReader(out)); ; {
			var r events.Record
			if err := d.Decode(&r); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Symbol)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: listed %q, want %q (%s)", c.args, got, c.want, errs)
		}
	}
}

// follow shows the newest events in the log and then each new one as it is raised.
func TestFollow(t *testing.T) {
	f := newFake(t)
	for _, n := range []string{"a", "b", "c"} {
		f.log.Raise(0, events.LinkUp{Adapter: n, Port: 1})
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	r, w := io.Pipe()
	done := make(chan int)
	go func() {
		done <- Main(ctx, tool.Env{Args: []string{"follow", "-n", "2", "-json"}, Stdout: w, Stderr: io.Discard},
			func(string) Driver { return f })
		w.Close()
	}()
	d := json.NewDecoder(r)
	for i, want := range []string{"b", "c", "d", "e"} {
		if i == 2 {
			f.log.Raise(0, events.LinkUp{Adapter: "d", Port: 1})
			f.log.Raise(0, events.LinkUp{Adapter: "e", Port: 1})
		}
		var x events.Record
		if err := d.Decode(&x); err != nil || x.Adapter != want {
			t.Fatalf("event %+v, %v; want one of adapter %s", x, err, want)
		}
	}
	stop()
	if status := <-done; status != tool.Success {
		t.Errorf("follow ends with status %d, want %d", status, tool.Success)
	}
}

// follow on an empty log shows the first event that is raised.
func TestFollowAnEmptyLog(t *testing.T) {
	f := newFake(t)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	r, w := io.Pipe()
	go func() {
		Main(ctx, tool.Env{Args: []string{"follow", "-json"}, Stdout: w, Stderr: io.Discard}, func(string) Driver { return f })
		w.Close()
	}()
	time.AfterFunc(10*time.Millisecond, func() { f.log.Raise(0, events.DriverStopped{}) })
	var x events.Record
	if err := json.NewDecoder(r).Decode(&x); err != nil || x.Symbol != "DriverStopped" || x.Sequence != 1 {
		t.Errorf("event %+v, %v; want DriverStopped with sequence 1", x, err)
	}
}

func TestBadUsage(t *testing.T) {
	for _, c := range []struct {
		says string
		args []string
	}{
		{": a command is missing; allowed: list, follow", nil},
		{"list, follow", []string{"nonsense"}},
		{"Information, Warning, Error", []string{"list", "-severity", "loud"}},
		{"mlx4_bus", []string{"list", "-source", "nosuch"}},
		{"decimal or with 0x", []string{"list", "-id", "x"}},
		{"a duration before now", []string{"list", "-since", "yesterday"}},
		{"a number from 1", []string{"list", "-n", "0"}},
		{"unexpected argument", []string{"list", "x"}},
	} {
		if status, _, errs := run(newFake(t), c.args...); status != 2 || !strings.Contains(errs, c.says) {
			t.Errorf("%q: status %d, %s; want 2 and %q", c.args, status, errs, c.says)
		}
	}
}
