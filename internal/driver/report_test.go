package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// logged returns the events of a state directory's log as "symbol adapter".
func logged(t *testing.T, state string) []string {
	t.Helper()
	l := events.Open(events.Config{Directory: filepath.Join(state, "events")})
	defer l.Close()
	p, err := l.Query(events.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range p.Events {
		out = append(out, strings.TrimSpace(r.Symbol+" "+r.Adapter))
	}
	return out
}

// inOrder reports whether got contains want in this order, with others in between.
func inOrder(got, want []string) bool {
	for _, g := range got {
		if len(want) > 0 && g == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func TestTheLifeOfADriverIsLogged(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Adapters[1].Generation = "mlx4"
	d := start(t, cfg)
	for _, enable := range []bool{false, true} {
		if err := d.SetAdapter(AdapterRequest{Adapter: "left", Enable: enable}); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, d)
	got := logged(t, cfg.State)
	for _, want := range [][]string{
		{"Identification left", "AdapterStarted left", "LinkUp left", "LinkDown left", "AdapterStopped left", "LinkUp left",
			"AdapterStopped left", "DriverStopped"},
		{"AdapterStarted right", "RoCEMode right", "DriverStarted", "AdapterDisabled left", "AdapterEnabled left", "AdapterStopped right",
			"DriverStopped"},
	} {
		if !inOrder(got, want) {
			t.Errorf("%q does not have %q", got, want)
		}
	}
	if slices.Contains(got, "Identification right") { // WinOF has no such event
		t.Error("an mlx4 adapter raises the events of mlx5")
	}
}

// An adapter that starts without RSS or without flow control says so; flow control is off by default (WinOF-2 1.21, 5.5).
// WinOF's list has no such events.
func TestSwitchedOffIsLogged(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Adapters[1].Generation = "mlx4"
	d := start(t, cfg)
	count := func() (off, flow int) {
		for _, e := range raised(t, d) {
			off += strings.Count(e, "RSSOff: left")
			flow += strings.Count(e, "FlowControlOff: left")
			if strings.HasPrefix(e, "RSSOff: right") || strings.HasPrefix(e, "FlowControlOff: right") {
				t.Error("an mlx4 adapter raises ", e)
			}
		}
		return off, flow
	}
	if off, flow := count(); off != 0 || flow != 1 {
		t.Errorf("by default RSSOff %d times and FlowControlOff %d times, want 0 and 1", off, flow)
	}
	for _, adapter := range []string{"left", "right"} {
		set(t, d, adapter, "*RSS", "0")
	}
	set(t, d, "left", "*FlowControl", "3")
	for _, adapter := range []string{"left", "right"} {
		restart(t, d, adapter)
	}
	if off, flow := count(); off != 1 || flow != 1 {
		t.Errorf("RSS off, flow control on: RSSOff %d times and FlowControlOff %d times in all, want 1 and 1", off, flow)
	}
	stop(t, d)
}

// TestRSSModesDifferIsLogged: of two ports of a device of WinOF, the one that starts when the other works with another RSS mode
// says so (WinOF 5.50, 6.7); ports of two devices, and of WinOF-2, do not.
func TestRSSModesDifferIsLogged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		generation, device string
		want               int
	}{{"mlx4", "hca", 1}, {"mlx4", "", 0}, {"mlx5", "hca", 0}} {
		cfg := twoAdapters(t)
		for i := range cfg.Adapters {
			cfg.Adapters[i].Generation, cfg.Adapters[i].Device = c.generation, c.device
		}
		d := start(t, cfg)
		count := func() (n int) {
			for _, e := range raised(t, d) {
				n += strings.Count(e, "RSSModesDiffer: right")
			}
			return n
		}
		if n := count(); n != 0 {
			t.Errorf("%+v: raised %d times with the same modes", c, n)
		}
		set(t, d, "right", "*RSS", "0")
		restart(t, d, "right")
		if n := count(); n != c.want {
			t.Errorf("%+v: raised %d times, want %d", c, n, c.want)
		}
		set(t, d, "left", "*RSS", "0")
		restart(t, d, "left")
		if n := count(); n != c.want {
			t.Errorf("%+v: raised again, though both are without RSS", c)
		}
		stop(t, d)
	}
}

func TestACrashIsLogged(t *testing.T) {
	cfg := twoAdapters(t)
	stop(t, start(t, cfg))
	if err := os.WriteFile(filepath.Join(cfg.State, "driver.lock"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop(t, start(t, cfg))
	if got := logged(t, cfg.State); !inOrder(got, []string{"DriverStopped", "DriverRecovered", "DriverStarted"}) {
		t.Errorf("the log has %q, want stopped, recovered and started", got)
	}
}

// TestDeathsOfProgramsAreLogged: a program whose stream just ends is logged as died, one that was disconnected as that,
// one that detaches as neither; and one that wants too much as that.
func TestDeathsOfProgramsAreLogged(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.SkipSelfCheck = true
	d := start(t, cfg)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	c, err := client.Dial(ctx, cfg.Socket, client.Options{Name: "orderly"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	d.programEnded(server.Departure{Name: "killed", PID: 6, Cause: fmt.Errorf("reading: %w", io.EOF)})
	d.programEnded(server.Departure{Name: "wild", PID: 7, Cause: errors.New("nonsense")})
	d.programRefused(server.Refusal{Name: "greedy", PID: 8, Cause: errors.New("a segment takes 9 bytes of memory")})
	stop(t, d)
	var got []string
	for _, e := range logged(t, cfg.State) {
		if strings.HasPrefix(e, "Program") {
			got = append(got, strings.TrimSpace(e))
		}
	}
	if want := []string{"ProgramDied", "ProgramDisconnected", "ProgramRefused"}; !slices.Equal(got, want) {
		t.Errorf("logged of programs: %q, want %q", got, want)
	}
}

// TestCountersAndEventsAreServed: the management interface serves the event log and the counters, and a restart
// clears counters.
func TestCountersAndEventsAreServed(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	admin := NewAdmin(cfg.Socket)
	sent := func() uint64 {
		t.Helper()
		var s counters.Snapshot
		if err := admin.Get(ctx, "/counters", url.Values{"path": {"adapter_traffic(left).sent_packets"}}, &s); err != nil {
			t.Fatal(err)
		}
		return *s.Instances[0].Values[0].Raw
	}
	if sent() == 0 {
		t.Error("the self-check's packets are not counted")
	}
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	if n := sent(); n != 0 {
		t.Errorf("%d packets are counted after a restart, want none", n)
	}
	var p events.Page
	if err := d.SetAdapter(AdapterRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(ctx, "/events", url.Values{"source": {"softvpi"}, "severity": {"Warning"}}, &p); err != nil || len(p.Events) != 1 ||
		p.Events[0].Symbol != "AdapterDisabled" {
		t.Errorf("warnings of softvpi: %+v (%v), want one of the disabled adapter", p, err)
	}
}

func TestSystemLogThatIsNone(t *testing.T) {
	var field *api.FieldError
	if _, err := Start(context.Background(), twoAdapters(t), Options{SystemLog: "paper"}); !errors.As(err, &field) ||
		field.Allowed != "journald, syslog, eventlog, auto" {
		t.Errorf("an unknown system log: error %v, want one with the allowed ones", err)
	}
}
