package commandlog

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestCommandLog_OfTenants: what a program of a virtual function asks for is logged for the adapter at whose port the function is, although
// the program calls its function adapter 0, and is told of with the function's name, refused or not.
func TestCommandLog_OfTenants(t *testing.T) {
	h, err := device.NewHost(device.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := vswitch.New(bridge.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pf := netip.MustParsePrefix("192.0.2.1/24")
	wire, err := s.Open(vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1, MTU: 4200}, Notify: h.Wake})
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []device.AdapterConfig{{Addr: loopback.Addr()},
		{Addr: pf.Addr(), Networks: []netip.Prefix{pf}, MAC: [6]byte{2, 0, 0, 0, 0, 1}, Link: wire}} {
		if _, err := h.AddAdapter(cfg); err != nil {
			t.Fatal(err)
		}
	}
	function, err := h.AddFunction(device.FunctionConfig{Owner: 1, Name: "red", MAC: [6]byte{2, 0, 0, 0, 0, 2},
		Addr: netip.MustParsePrefix("192.0.2.2/24")})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := h.NewClient(device.ClientConfig{Function: &function})
	if err != nil {
		t.Fatal(err)
	}
	log := New(2)
	told, refused := 0, 0
	log.Tenant = func(name string, took time.Duration, err error) {
		if name != "red" || took < 0 {
			t.Errorf("a command of %q, of %v", name, took)
		}
		if told++; err != nil {
			refused++
		}
	}
	c := log.Client(plain, "program", 7)
	pd, err := do[command.Handle](t.Context(), c, proto.OpAllocPD, proto.AdapterArgs{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do[proto.Empty](t.Context(), c, proto.OpDestroy, proto.DestroyArgs{Kind: command.KindPD, Handle: pd}); err != nil {
		t.Fatal(err)
	}
	if _, err := do[command.Handle](t.Context(), c, proto.OpAllocPD, proto.AdapterArgs{Adapter: 1}); err == nil {
		t.Fatal("the port's adapter is found")
	}
	if r := log.Recent(0); len(r) != 0 {
		t.Errorf("logged for another adapter: %+v", r)
	}
	r := log.Recent(1)
	if len(r) != 3 || r[0].Command != "ALLOC_PD" || r[1].Command != "DESTROY" || r[2].Failure != command.NotFound {
		t.Errorf("logged for the function's adapter: %+v; want three commands, the last one refused", r)
	}
	if told != 3 || refused != 1 {
		t.Errorf("%d commands are told of, %d refused; want 3 and 1", told, refused)
	}
}
