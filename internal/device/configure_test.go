package device

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestConfigure: settings are refused while the adapter is enabled or where they contradict each other, with an error
// that changes nothing; accepted ones are in force when it is enabled again.
func TestConfigure(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	addr := loopback.Addr()
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
		t.Errorf("while the adapter is enabled: error %v, want busy", err)
	}
	if err := h.SetAdapterState(index, false); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure(index, Settings{RoCE: RoCEv1}); code(err) != command.Unsupported {
		t.Errorf("RoCE v1 over UDP: error %v, want unsupported", err)
	}
	if err := h.Configure(index, Settings{UDPPort: 1021}); code(err) != command.InUse {
		t.Errorf("a UDP port in use: error %v, want in use", err)
	}
	if err := h.Configure(index, Settings{RoceMaxFrameSize: 1000}); code(err) != command.Invalid {
		t.Errorf("a frame size of 1000: error %v, want invalid", err)
	}
	if err := h.Configure(index, Settings{RoceMaxFrameSize: 512, UDPPort: 4000, Limits: Limits{QP: 16}}); err != nil {
		t.Fatal(err)
	}
	if err := h.SetAdapterState(index, true); err != nil {
		t.Fatal(err)
	}
	if i := h.Snapshot().Adapters[index].Info; i.ActiveMTU != 512 || i.UDPPort != 4000 || i.MaxQP != 16 {
		t.Errorf("MTU %d, port %d, %d QPs; want 512, 4000, 16", i.ActiveMTU, i.UDPPort, i.MaxQP)
	}
}

// TestConfigureMTUAndMAC: a port may be given a smaller MTU than its link's and another MAC address, and returns to
// its link's when the settings are taken back. Values that cannot work are refused.
func TestConfigureMTUAndMAC(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	index := h.add(t, AdapterConfig{Addr: loopback.Addr(), Disabled: true})
	before := h.Snapshot().Adapters[index]
	if err := h.Configure(index, Settings{MTU: 347}); err == nil {
		t.Error("an MTU of 347, too small for 256 bytes of payload, was accepted")
	}
	if err := h.Configure(index, Settings{MAC: [6]byte{1}}); err == nil {
		t.Error("a multicast MAC address was accepted")
	}
	var wrong *FrameSizeError
	if err := h.Configure(index, Settings{MTU: 1500, RoceMaxFrameSize: 2048}); !errors.As(err, &wrong) || wrong.Most != 1024 {
		t.Errorf("2048 bytes in packets of 1500: error %v, want one that allows at most 1024", err)
	}
	mac := [6]byte{2, 3, 4, 5, 6, 7}
	if err := h.Configure(index, Settings{MTU: 1500, MAC: mac}); err != nil {
		t.Fatal(err)
	}
	if a := h.Snapshot().Adapters[index]; a.Info.LinkMTU != 1500 || a.Info.ActiveMTU != 1024 || a.MAC != mac ||
		a.Info.GUID != before.Info.GUID {
		t.Errorf("MTU %d and %d, MAC %x, GUID %x; want 1500 and 1024, the MAC set, the GUID unchanged", a.Info.LinkMTU, a.Info.ActiveMTU,
			a.MAC, a.Info.GUID)
	}
	if err := h.Configure(index, Settings{}); err != nil {
		t.Fatal(err)
	}
	if a := h.Snapshot().Adapters[index]; a.Info.LinkMTU != before.Info.LinkMTU || a.Info.ActiveMTU != 4096 || a.MAC != before.MAC {
		t.Errorf("settings taken back: MTU %d and %d, MAC %x; want those of the start", a.Info.LinkMTU, a.Info.ActiveMTU, a.MAC)
	}
}

// TestGIDInterval: a new interval takes effect at once in the loop that follows the interface's addresses.
func TestGIDInterval(t *testing.T) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	index := h.add(t, AdapterConfig{Addr: loopback.Addr(), FollowInterface: true})
	h.lock()
	h.adapters[index].gids = gid.Table{} // the next look fills it again
	h.unlock()
	rows := func() int { return len(h.Snapshot().Adapters[index].GIDs) }
	h.SetGIDInterval(time.Millisecond)
	await.Eventually(t, "the GID table is filled again", func() bool { return rows() > 0 })
}
