package device

import (
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestOnDemandOfThisProcess: regions on demand of a program in the adapter's process are reached as it says, and refused if it
// says nothing, since a missing page would be a fault of the process; others are reached at their addresses in any case.
func TestOnDemandOfThisProcess(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	index := h.add(t, AdapterConfig{Addr: loopback.Pair()[0]})
	buf := make([]byte, 4096)
	r := command.RegisterMemory{Access: uint32(memory.LocalWrite | memory.OnDemand), Base: uint64(uintptr(unsafe.Pointer(&buf[0]))),
		Length: uint64(len(buf))}
	for _, can := range []bool{false, true} {
		asked := 0
		cfg := ClientConfig{Name: t.Name(), PID: 1}
		if can {
			cfg.OnDemand = func(command.RegisterMemory) (Reached, error) {
				asked++
				return Reached{Bytes: buf, Path: command.MemoryProcessVM}, nil
			}
		}
		p := newProgramWith(t, h, index, cfg)
		pd, err := p.c.AllocPD(bg, index)
		p.check(err)
		r.PD = pd
		m, err := p.c.RegisterMemory(bg, r)
		if can {
			p.check(err)
			if asked != 1 || m.Path != command.MemoryProcessVM {
				t.Errorf("asked %d times, reached by %v", asked, m.Path)
			}
		} else {
			wantCode(t, err, command.Unsupported)
		}
		plain := r
		plain.Access = uint32(memory.LocalWrite)
		m, err = p.c.RegisterMemory(bg, plain)
		p.check(err)
		if m.Path != command.MemoryMapped || asked > 1 {
			t.Errorf("memory that is not on demand is reached by %v", m.Path)
		}
	}
}
