package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestSetPriorities: a port of sockets divides its wire as it is told, at once; what makes no sense changes nothing, and of the
// adapters at one port the first is asked.
func TestSetPriorities(t *testing.T) {
	h := newHost(t, Config{})
	addr := loopback.Addr()
	i := h.add(t, AdapterConfig{Addr: addr})
	second := h.add(t, AdapterConfig{Addr: loopback.Addr(), ShareWith: &i})
	e, err := qos.ParseClasses("3:1,5:7", "0:40,1:60")
	if err != nil {
		t.Fatal(err)
	}
	trust := qos.Classifier{ByDSCP: true, Untagged: 2}
	own := qos.Operative{Settings: qos.Settings{ETS: e, PFC: 8}, ETSFrom: qos.FromLocal}
	if err := h.SetPriorities(i, Priorities{Own: own, Received: trust}); err != nil {
		t.Fatal(err)
	}
	s := h.Overview().Adapters[i].Priorities
	if x := s.Traffic; x.Class != e.Class || x.Weight != [8]uint8{40, 60} || x.Strict != 0xfc || s.Received != trust {
		t.Errorf("%+v", s)
	}
	if !s.Operative.Equal(&own) {
		t.Errorf("%+v", s.Operative)
	}
	trust.Untagged = 8
	wantCode(t, h.SetPriorities(i, Priorities{Own: own, Received: trust}), command.Invalid)
	own.ETS.Bandwidth[0], trust.Untagged = 50, 0
	wantCode(t, h.SetPriorities(i, Priorities{Own: own, Received: trust}), command.Invalid)
	wantCode(t, h.SetPriorities(second, Priorities{Own: own}), command.Unsupported)
	wantCode(t, h.CheckPriorities(second), command.Unsupported)
	if x := h.Overview().Adapters[second].Priorities.Traffic; x.Weight != [8]uint8{40, 60} {
		t.Errorf("%+v", x)
	}
}
