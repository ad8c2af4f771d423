package device

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

func TestConfigure(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	addr := loopback()
	index := h.add(t, AdapterConfig{Addr: addr})
	h.add(t, AdapterConfig{Addr: addr, UDPPort: 1021})
	code := func(err error) command.Code {
		var e *command.Error
		errors.As(err, &e)
		if e == nil {
			return 0
		}
		return e.Code
	}
	if err := h.Configure(index, Settings{}); code(err) != command.Busy {
		t.Errorf("while it is enabled: %v", err)
	}
	if err := h.SetAdapterState(index, false); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure(index, Settings{RoCE: RoCEv1}); code(err) != command.Unsupported {
		t.Errorf("v1 over UDP: %v", err)
	}
	if err := h.Configure(index, Settings{UDPPort: 1021}); code(err) != command.InUse {
		t.Errorf("the port of another: %v", err)
	}
	if err := h.Configure(index, Settings{RoceMaxFrameSize: 1000}); code(err) != command.Invalid {
		t.Errorf("a frame of 1000: %v", err)
	}
	if err := h.Configure(index, Settings{RoceMaxFrameSize: 512, UDPPort: 4000, Limits: Limits{QP: 16}}); err != nil {
		t.Fatal(err)
	}
	if err := h.SetAdapterState(index, true); err != nil {
		t.Fatal(err)
	}
	if i := h.Snapshot().Adapters[index].Info; i.ActiveMTU != 512 || i.UDPPort != 4000 || i.MaxQP != 16 {
		t.Errorf("MTU %d, port %d, %d QPs", i.ActiveMTU, i.UDPPort, i.MaxQP)
	}
}

// The address follower takes another interval up at once.
func TestGIDInterval(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	index := h.add(t, AdapterConfig{Addr: loopback(), FollowInterface: true})
	h.lock()
	h.adapters[index].gids.rows = nil // what the next look brings back
	h.unlock()
	rows := func() int { return len(h.Snapshot().Adapters[index].GIDs) }
	h.SetGIDInterval(time.Millisecond)
	for deadline := time.Now().Add(patience); rows() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody looks")
		}
	}
}
