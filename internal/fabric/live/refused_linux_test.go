package live

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestCableTells: a missing fabric is reported once, however often it is looked for; one that refuses once for its
// reason; and one that admits the adapter each time.
func TestCableTells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cables")
	told := make(chan error, 100)
	next := func(what string, is func(error) bool) {
		t.Helper()
		for late := time.After(await.Limit); ; {
			select {
			case err := <-told:
				if errors.Is(err, syscall.ECONNREFUSED) { // a socket has its name before anybody listens there
					continue
				}
				if !is(err) {
					t.Fatalf("reported %v, want %s", err, what)
				}
				return
			case <-late:
				t.Fatalf("%s: nothing was reported", what)
			}
		}
	}
	missing := func(err error) bool { return errors.Is(err, fs.ErrNotExist) }
	plugged := func(err error) bool { return err == nil }
	refused := func(err error) bool { var r *cable.RefusedError; return errors.As(err, &r) }
	farAt(t, cable.Config{Hello: cable.Hello{Node: "node00000", Program: "test"}, Socket: path, Tell: func(err error) { told <- err }})
	next("that it is missing", missing)
	first := newGround(t, 2, Options{})
	_, stop := first.outside(path)
	next("that it is plugged in", plugged)
	stop()
	next("that it is missing", missing)
	second := newGround(t, 2, Options{})
	taken, err := second.Find("node00000", 1)
	if err != nil {
		t.Fatal(err)
	}
	near, err := second.Plug(taken, func() {})
	if err != nil {
		t.Fatal(err)
	}
	second.outside(path)
	next("that it is refused", refused)
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	next("that it is plugged in", plugged) // and nothing in between
}

// TestRefused: an adapter that the fabric does not admit is refused at once, with the reason.
func TestRefused(t *testing.T) {
	g := newGround(t, 2, Options{})
	socket, _ := g.outside("")
	far(t, socket, "node00000", false)
	var sw string
	g.Do(func(_ clock.Time, f *fabric.Fabric) { sw = f.Names()[2] })
	for node, why := range map[string]string{"nobody": "no node", "node00000": "already", sw: "is a switch"} {
		_, err := cable.Open(cable.Config{Hello: cable.Hello{Node: node}, Socket: socket})
		var refused *cable.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want a refusal with %q", node, err, why)
		}
	}
	far(t, socket, "", false) // the only one left
	if _, err := cable.Open(cable.Config{Socket: socket}); err == nil || !strings.Contains(err.Error(), "all channel adapters") {
		t.Errorf("without a free adapter: error %v, want one that says so", err)
	}
	if _, err := Listen(socket, 0o600); err == nil {
		t.Error("a second fabric listens at the same socket")
	}
}
