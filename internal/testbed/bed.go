// Package testbed is a test bed for the public packages: two adapters on loopback addresses that no other test
// uses, embedded in the test or in a driver that programs attach to.
package testbed

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/verbs"
)

// Bed is two adapters and the sessions of two programs that use them.
type Bed struct {
	Mode   verbs.Mode
	Server *verbs.Host // the program that listens
	Client *verbs.Host // the program that connects; the same session when embedded
	Addrs  [2]netip.Addr

	// SetEnabled enables or disables an adapter while programs use it.
	SetEnabled func(adapter int, enabled bool) error
	// StopDriver ends the driver while programs are attached; nil when embedded.
	StopDriver func()
}

// Modes returns the modes that the system supports.
func Modes() []verbs.Mode {
	if !attaches {
		return []verbs.Mode{verbs.Embedded}
	}
	return []verbs.Mode{verbs.Embedded, verbs.Attached}
}

// Each runs test once for every mode.
func Each(t *testing.T, test func(t *testing.T, b *Bed)) {
	for _, m := range Modes() {
		t.Run(m.String(), func(t *testing.T) { test(t, New(t, m)) })
	}
}

// New creates a bed that lasts as long as the test.
func New(t testing.TB, m verbs.Mode) *Bed {
	t.Helper()
	b := &Bed{Mode: m, Addrs: Addrs()}
	if m == verbs.Attached {
		b.attach(t)
	} else {
		b.embed(t)
	}
	return b
}

// Addrs returns two adjacent addresses of 127.0.0.0/8 that no other test uses.
func Addrs() [2]netip.Addr { return loopback.Pair() }

// Adapters describes the two adapters at addrs.
func Adapters(addrs [2]netip.Addr) []verbs.AdapterConfig {
	return []verbs.AdapterConfig{{Addr: addrs[0]}, {Addr: addrs[1]}}
}

func (b *Bed) embed(t testing.TB) {
	h, err := verbs.Embed(verbs.Config{Name: "test", Adapters: Adapters(b.Addrs)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close host: %v", err)
		}
	})
	b.Server, b.Client = h, h
	b.SetEnabled = func(adapter int, enabled bool) error {
		d, err := h.DeviceByAddr(b.Addrs[adapter])
		if err != nil {
			return err
		}
		return d.SetEnabled(enabled)
	}
}

// Device returns the adapter of a side: 0 the server's, 1 the client's.
func (b *Bed) Device(t testing.TB, side int) *verbs.Device {
	t.Helper()
	h := b.Server
	if side == 1 {
		h = b.Client
	}
	d, err := h.DeviceByAddr(b.Addrs[side])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Context returns a context that ends a little before a test would be considered hanging.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
