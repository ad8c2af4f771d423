package impair

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/link/memlink"
)

// able is a link with abilities that change with its interface.
type able struct {
	link.Link
	mtu int
}

func (a *able) Resolve(context.Context, netip.Addr) error { return nil }
func (a *able) ArmWakeUp() bool                           { return true }

func (a *able) Capabilities() link.Capabilities {
	c := a.Link.Capabilities()
	c.MTU, c.Resolver, c.Sleeper = a.mtu, a, a
	return c
}

// TestCapabilities_OfTheInnerLink: links around another pass on everything that it can, also what changes while it is
// open.
func TestCapabilities_OfTheInnerLink(t *testing.T) {
	p, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: netip.MustParseAddr("10.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	inner := &able{p, 1500}
	l := New(capture.New(inner, netip.MustParseAddr("10.0.0.1"), 0, time.Now), Impairment{}, func() clock.Time { return 0 })
	for _, inner.mtu = range []int{1500, 9000} {
		if got, want := l.Capabilities(), inner.Capabilities(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if c := l.Capabilities(); c.Multicaster == nil || c.Resolver == nil || c.Sleeper == nil {
		t.Errorf("abilities are missing: %+v", c)
	}
}
