package device

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestReregisterMemory: a region that is registered anew keeps handle and keys, with other memory, rights and domain
// (IBA 11.2.8.7): a peer that was told the keys goes on.
func TestReregisterMemory(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			x, y := n.make(t, AdapterConfig{})
			c := connect(x.qp(command.CreateQP{}, x.cq(64)), y.qp(command.CreateQP{}, y.cq(64)))
			src, dst := x.buffer(64), y.buffer(64)
			copy(src.b, "to the new place")
			next := y.pages(128)
			r := command.ReregisterMemory{Memory: dst.mem.Handle}
			r.RegisterMemory = command.RegisterMemory{PD: y.pd, Access: uint32(allRights), Base: (&buffer{b: next}).addr(0), Length: 128}
			r.IOVA = r.Base
			m, err := y.c.ReregisterMemory(bg, r)
			y.check(err)
			if m != dst.mem {
				t.Fatalf("%+v, want %+v as before", m, dst.mem)
			}
			wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: r.Base + 100, RKey: m.RKey}
			wr.SGE[0] = src.sge(0, 16)
			c.a.post(wr)
			wantSuccess(t, c.a.cq.next(), 0, ring.CQWrite)
			if got := string(next[100:116]); got != "to the new place" {
				t.Errorf("%q arrived", got)
			}
			r.Access = uint32(memory.LocalWrite)
			_, err = y.c.ReregisterMemory(bg, r)
			y.check(err)
			c.a.post(wr)
			if e := c.a.cq.next(); e.Status != ring.RemoteAccess {
				t.Errorf("a write without the right: %v", e.Status)
			}
		})
	}
}

// TestReregisterMemoryMovesToAnotherDomain: the former domain may go, and the new one is in use.
func TestReregisterMemoryMovesToAnotherDomain(t *testing.T) {
	x := newChannelProgram(t)
	b := x.buffer(4096)
	other, err := x.c.AllocPD(bg, x.adapter)
	x.check(err)
	r := command.ReregisterMemory{Memory: b.mem.Handle}
	r.RegisterMemory = command.RegisterMemory{PD: other, Access: uint32(allRights), Base: b.addr(0), Length: 4096}
	r.IOVA = 1 << 40
	_, err = x.c.ReregisterMemory(bg, r)
	x.check(err)
	x.check(x.c.Destroy(bg, command.KindPD, x.pd))
	if err := x.c.Destroy(bg, command.KindPD, other); !errors.Is(err, &command.Error{Code: command.Busy}) {
		t.Errorf("destroying the new domain: %v, want busy", err)
	}
	x.check(x.c.Destroy(bg, command.KindMemory, b.mem.Handle))
	x.check(x.c.Destroy(bg, command.KindPD, other))
}

// TestReregisterMemoryRefusals: what is refused leaves the region as it was.
func TestReregisterMemoryRefusals(t *testing.T) {
	x, y := overMemory(true)(t, AdapterConfig{})
	b := x.buffer(4096)
	foreign, err := x.c.AllocPD(bg, y.adapter)
	x.check(err)
	good := command.ReregisterMemory{Memory: b.mem.Handle}
	good.RegisterMemory = command.RegisterMemory{PD: x.pd, Access: uint32(allRights), Base: b.addr(0), Length: 4096}
	good.IOVA = good.Base
	for _, c := range []struct {
		name string
		edit func(*command.ReregisterMemory)
		want command.Code
	}{
		{"no such region", func(r *command.ReregisterMemory) { r.Memory = 0xdead }, command.NotFound},
		{"no such domain", func(r *command.ReregisterMemory) { r.PD = 0xdead }, command.NotFound},
		{"domain of another adapter", func(r *command.ReregisterMemory) { r.PD = foreign }, command.Invalid},
		{"rights", func(r *command.ReregisterMemory) { r.Access = uint32(memory.RemoteWrite) }, command.Invalid},
		{"length", func(r *command.ReregisterMemory) { r.Length = 0 }, command.Invalid},
		{"addresses that wrap", func(r *command.ReregisterMemory) { r.IOVA = ^uint64(0) - 10 }, command.Invalid},
	} {
		r := good
		c.edit(&r)
		if _, err := x.c.ReregisterMemory(bg, r); !errors.Is(err, &command.Error{Code: c.want}) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if m := x.c.mrs.Get(b.mem.Handle); m.region.Dead() || m.region.Key != b.mem.LKey {
			t.Fatalf("%s: the region has changed", c.name)
		}
	}
	for _, enabled := range []bool{false, true} { // the region has gone with the adapter
		x.check(x.host.SetAdapterState(x.adapter, enabled))
		if _, err := x.c.ReregisterMemory(bg, good); !errors.Is(err, &command.Error{Code: command.Removed}) {
			t.Errorf("after the adapter was disabled (enabled: %t): %v", enabled, err)
		}
	}
}
