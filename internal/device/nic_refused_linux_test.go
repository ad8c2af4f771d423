package device

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/hostside"
)

// refusingEnd is an end that has no queues for a function.
type refusingEnd struct {
	hostside.End
	closed int
}

func (*refusingEnd) Kind() string        { return "refusing" }
func (*refusingEnd) Queues() int         { return 1 }
func (*refusingEnd) SetQueues(int) error { return errors.New("no queues") }
func (*refusingEnd) Virtio() bool        { return false }
func (*refusingEnd) Datagrams() bool     { return false }
func (*refusingEnd) Pause(bool)          {}
func (*refusingEnd) SetLink(bool)        {}
func (*refusingEnd) Descriptors() []int  { return nil }
func (e *refusingEnd) Close() error      { e.closed++; return nil }

// TestAddAdapter_WithoutItsNIC: an adapter whose Ethernet function cannot start is not added, leaves nothing at the port that it was to
// share, and gives its host's end back; another adapter may have its MAC and address, and gets what is for them.
func TestAddAdapter_WithoutItsNIC(t *testing.T) {
	one, _, third := threeEnds(t)
	h, owner := one.host, uint32(0)
	cfg := AdapterConfig{Addr: netip.MustParseAddr("10.79.0.8"), MAC: [6]byte{2, 0, 0, 0, 9, 8}, ShareWith: &owner, Path: PathWire}
	end := &refusingEnd{}
	cfg.Ethernet = &EthernetConfig{Host: end, Config: ethernet.Defaults(catalogue.MLX5)}
	if _, err := h.AddAdapter(cfg); !errors.Is(err, &command.Error{Code: command.Unsupported}) {
		t.Fatalf("it is added: %v", err)
	}
	h.lock()
	adapters, functions, nics := len(h.adapters), len(h.adapters[owner].port.functions), len(h.adapters[owner].port.nics)
	h.unlock()
	if adapters != 2 || functions != 2 || nics != 0 {
		t.Errorf("there are %d adapters, %d functions and %d Ethernet functions, want 2, 2 and 0", adapters, functions, nics)
	}
	if end.closed != 1 {
		t.Errorf("the end is closed %d times, want once", end.closed)
	}
	cfg.Ethernet = nil
	again := newProgram(t, h, h.add(t, cfg))
	exchange(t, connect(again.idleQP(), third.idleQP()), 20000)
	exchange(t, connect(again.idleQP(), one.idleQP()), 20000)
}
