package device

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/gid"
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

// A port takes smaller packets than its link carries, and another MAC address than its own, until it is told
// otherwise.
func TestConfigureMTUAndMAC(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	index := h.add(t, AdapterConfig{Addr: loopback(), Disabled: true})
	before := h.Snapshot().Adapters[index]
	if err := h.Configure(index, Settings{MTU: 347}); err == nil {
		t.Error("an MTU of 347 holds 256 bytes of payload")
	}
	if err := h.Configure(index, Settings{MAC: [6]byte{1}}); err == nil {
		t.Error("a multicast address is the port's")
	}
	var wrong *FrameSizeError
	if err := h.Configure(index, Settings{MTU: 1500, RoceMaxFrameSize: 2048}); !errors.As(err, &wrong) || wrong.Most != 1024 {
		t.Errorf("2048 bytes in packets of 1500: %v", err)
	}
	mac := [6]byte{2, 3, 4, 5, 6, 7}
	if err := h.Configure(index, Settings{MTU: 1500, MAC: mac}); err != nil {
		t.Fatal(err)
	}
	if a := h.Snapshot().Adapters[index]; a.Info.LinkMTU != 1500 || a.Info.ActiveMTU != 1024 || a.MAC != mac || a.Info.GUID != before.Info.GUID {
		t.Errorf("MTU %d and %d, MAC %x, GUID %x", a.Info.LinkMTU, a.Info.ActiveMTU, a.MAC, a.Info.GUID)
	}
	if err := h.Configure(index, Settings{}); err != nil {
		t.Fatal(err)
	}
	if a := h.Snapshot().Adapters[index]; a.Info.LinkMTU != before.Info.LinkMTU || a.Info.ActiveMTU != 4096 || a.MAC != before.MAC {
		t.Errorf("back again: MTU %d and %d, MAC %x", a.Info.LinkMTU, a.Info.ActiveMTU, a.MAC)
	}
}

// The address follower takes another interval up at once.
func TestGIDInterval(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	index := h.add(t, AdapterConfig{Addr: loopback(), FollowInterface: true})
	h.lock()
	h.adapters[index].gids = gid.Table{} // what the next look brings back
	h.unlock()
	rows := func() int { return len(h.Snapshot().Adapters[index].GIDs) }
	h.SetGIDInterval(time.Millisecond)
	for deadline := time.Now().Add(patience); rows() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody looks")
		}
	}
}
