package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// sleeper is a driver whose adapter's guest can sleep, with another on the same wire, and what its wake command does.
type sleeper struct {
	*Driver
	guest, other *guest
	notes        string // what the command writes
}

// newSleeper starts both drivers; the command writes its environment and arguments, one of which a shell would take apart.
func newSleeper(t *testing.T) *sleeper {
	t.Helper()
	cfg := overSockets(t)
	s := &sleeper{guest: withGuest(t, &cfg[0], "02:00:00:00:00:01"), other: withGuest(t, &cfg[1], "02:00:00:00:00:02")}
	dir := t.TempDir()
	s.notes = filepath.Join(dir, "notes")
	script := filepath.Join(dir, "wake")
	text := "#!/bin/sh\n" + `echo "$SOFTVPI_ADAPTER/$SOFTVPI_WAKE_REASON/$SOFTVPI_WAKE_PATTERN/$1" >>"$2"` + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg[0].Adapters[0].Wake = []string{script, "a; b $(c)", s.notes}
	s.Driver = start(t, cfg[0])
	t.Cleanup(func() { stop(t, s.Driver) })
	far := start(t, cfg[1])
	t.Cleanup(func() { stop(t, far) })
	return s
}

// put puts the guest to sleep.
func (s *sleeper) put(t *testing.T, patterns ...string) {
	t.Helper()
	if err := s.SleepAdapter(SleepRequest{Adapter: "port", Sleep: true, Patterns: patterns}); err != nil {
		t.Fatal(err)
	}
	if !s.Status().Adapters[0].Ethernet.Asleep {
		t.Fatal("it does not sleep")
	}
}

func (s *sleeper) count(name string) uint64 { return s.Status().Adapters[0].Ethernet.Counters[name] }

// lost sends a frame that does not wake the guest.
func (s *sleeper) lost(t *testing.T, f []byte) {
	t.Helper()
	before := s.count("dropped_asleep_frames")
	s.other.send(t, f)
	await.Eventually(t, "a frame for a host that sleeps is dropped", func() bool { return s.count("dropped_asleep_frames") > before })
	if !s.Status().Adapters[0].Ethernet.Asleep {
		t.Error("it has woken the host")
	}
}

// magic returns a magic packet for the guest.
func (s *sleeper) magic() []byte {
	return s.other.frame(eth.Broadcast, strings.Repeat("\xff", 6)+string(bytes.Repeat(s.guest.mac[:], 16)))
}

// once is send, at its first call: a frame that is sent again because the host has no processor to take it would wake it another time.
func once(send func()) func() { return sync.OnceFunc(send) }

// TestWake: a host that sleeps gets no frame until a magic packet or a pattern wakes it ("WinOF-2 Ethernet Network",
// Wake-on-LAN), as far as *WakeOnMagicPacket and *WakeOnPattern allow it; that frame and the next reach it, an event and a
// counter tell of it, and the command of the configuration runs, without a shell. Nothing is read from a host that sleeps.
func TestWake(t *testing.T) {
	s := newSleeper(t)
	s.put(t)
	s.lost(t, s.other.frame(s.guest.mac, "to one who sleeps"))
	s.guest.send(t, s.guest.frame(s.other.mac, "from one who sleeps"))
	s.guest.gets(t, strings.Repeat("\xff", 6), once(func() { s.other.send(t, s.magic()) }))
	s.other.gets(t, "from one who sleeps", func() {})
	s.wrote(t, "port/magic//a; b $(c)")

	s.put(t, "12:88b5+14:77616b65") // "wake"
	s.lost(t, s.other.frame(s.guest.mac, "walk"))
	s.guest.gets(t, "wake", once(func() { s.other.send(t, s.other.frame(s.guest.mac, "wake")) }))
	s.wrote(t, "port/pattern/12:88b577616b65/a; b $(c)")

	set(t, s.Driver, "port", "*WakeOnMagicPacket", "0")
	set(t, s.Driver, "port", "*WakeOnPattern", "0")
	s.put(t, "12:88b5")
	s.lost(t, s.magic())
	if err := s.SleepAdapter(SleepRequest{Adapter: "port"}); err != nil || s.Status().Adapters[0].Ethernet.Asleep {
		t.Errorf("woken by request, it sleeps: %v", err)
	}
	s.guest.gets(t, "awake", func() { s.other.send(t, s.other.frame(s.guest.mac, "awake")) })
	if n := s.count("wakes"); n != 2 {
		t.Errorf("%d wake-ups by frames, want 2", n)
	}
	for _, want := range []string{"AdapterAsleep: port: the host sleeps until a magic packet or one of 1 patterns wakes it.",
		"AdapterWoken: port: the host was woken by a magic packet.", "AdapterWoken: port: the host was woken by the pattern 12:88b577616b65.",
		"AdapterWoken: port: the host was woken by a request."} {
		if all := raised(t, s.Driver); !slices.Contains(all, want) {
			t.Errorf("no event %q in %q", want, all)
		}
	}
}

// wrote waits for a line that the command writes, and for its end: while it runs another wake-up starts none.
func (s *sleeper) wrote(t *testing.T, want string) {
	t.Helper()
	await.Eventually(t, want, func() bool {
		b, _ := os.ReadFile(s.notes)
		s.waking.Lock()
		defer s.waking.Unlock()
		return len(s.waking.running) == 0 && slices.Contains(strings.Split(string(b), "\n"), want)
	})
}

// TestWake_Refused: what cannot be is refused with the field, and nothing sleeps; the end of an adapter's function is also that of
// its sleep.
func TestWake_Refused(t *testing.T) {
	s := newSleeper(t)
	for want, q := range map[string]SleepRequest{
		`patterns[1] is "12:0"`: {Adapter: "port", Sleep: true, Patterns: []string{"12:08", "12:0"}},
		"patterns is 33":        {Adapter: "port", Sleep: true, Patterns: slices.Repeat([]string{"12:08"}, 33)},
		"patterns is given":     {Adapter: "port", Patterns: []string{"12:08"}},
		`adapter is "nobody"`:   {Adapter: "nobody", Sleep: true},
	} {
		if err := s.SleepAdapter(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if s.Status().Adapters[0].Ethernet.Asleep {
		t.Error("it sleeps")
	}
	s.put(t)
	restart(t, s.Driver, "port")
	if s.Status().Adapters[0].Ethernet.Asleep {
		t.Error("it sleeps after a restart")
	}
	if err := s.SetAdapter(AdapterRequest{Adapter: "port"}); err != nil {
		t.Fatal(err)
	}
	if err := s.SleepAdapter(SleepRequest{Adapter: "port", Sleep: true}); err == nil || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("a disabled adapter sleeps: %v", err)
	}
	d := start(t, quiet(t))
	defer stop(t, d)
	name := d.Config().Adapters[0].Name
	if err := d.SleepAdapter(api.SleepRequest{Adapter: name, Sleep: true}); err == nil || !strings.Contains(err.Error(), "has no Ethernet function") {
		t.Errorf("an adapter without a host sleeps: %v", err)
	}
}

// TestWake_Command: a command that cannot run, or fails, is told of with the end of what it printed, and one that does not end
// is ended with the driver.
func TestWake_Command(t *testing.T) {
	cfg := overSockets(t)[0]
	withGuest(t, &cfg, "02:00:00:00:00:01")
	d := start(t, cfg)
	defer stop(t, d)
	fails := func(want string, command ...string) {
		t.Helper()
		d.startWake(0, command, nil)
		await.Eventually(t, want, func() bool {
			return slices.ContainsFunc(raised(t, d), func(e string) bool { return strings.Contains(e, want) })
		})
	}
	fails("the command /nowhere/wake for a wake-up failed: fork/exec", "/nowhere/wake")
	fails(`exit status 3: "`+strings.Repeat("x", 50), "/bin/sh", "-c", "yes x | head -5000 | tr -d '\\n'; exit 3")
	d.startWake(0, []string{"/bin/sleep", "1000"}, nil)
	fails("the one of an earlier wake-up still runs", "/bin/true")
}

// TestWake_CommandsChildren: what a command has started ends with it.
func TestWake_CommandsChildren(t *testing.T) {
	systemtest.Mark(t)
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	var child int
	done := make(chan error)
	go func() {
		done <- runWake(ctx, []string{"/bin/sh", "-c", "sleep 1000 & echo $! > " + file + "; wait"}, nil)
	}()
	await.Eventually(t, "the command has a child", func() bool {
		b, _ := os.ReadFile(file)
		n, err := fmt.Sscanln(string(b), &child)
		return n == 1 && err == nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was ended", err)
	}
	await.Eventually(t, "the child is gone", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(b), ") Z ") // ended, and perhaps nobody here collects it
	})
}
