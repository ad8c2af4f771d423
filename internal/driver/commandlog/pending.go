package commandlog

import (
	"slices"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// returning are the commands that wait for nobody: none for a peer, as those of the connection manager do, nor for another program to
// let go of what is shared, as those may that change or destroy objects. One that does not return is stuck.
var returning = [proto.OpEnd]bool{
	proto.OpGIDs: true, proto.OpCounters: true, proto.OpPort: true, proto.OpAllocPD: true, proto.OpCreateAH: true,
	proto.OpRegisterMemory: true, proto.OpRegisterMemoryAt: true, proto.OpAllocWindow: true, proto.OpCreateCQ: true,
	proto.OpModerateCQ: true, proto.OpCreateSRQ: true, proto.OpQuerySRQ: true, proto.OpCreateQP: true, proto.OpQueryQP: true,
	proto.OpMemoryInfo: true, proto.OpAllocDM: true, proto.OpOpenXRCD: true, proto.OpCreateXRCSRQ: true, proto.OpCreateTagSRQ: true,
}

// Pending is a command that has been given and not answered.
type Pending struct {
	Number   uint32 // of the adapter's
	Function string // the virtual function whose program has given it; empty: the adapter's own
}

// pending are the commands that an adapter is carrying out, and the fault of not doing so.
type pending struct {
	list    []Pending
	next    uint32                // number of the next
	gate    chan struct{}         // a fault: they wait until it is closed; nil: none
	tenants map[string]tenantGate // by virtual functions, of those whose commands wait
}

// tenantGate is what the commands of a virtual function wait at.
type tenantGate struct {
	own  bool // a fault of the virtual function, not of the adapter
	gate chan struct{}
}

// begin notes a command of a virtual function's program, or of another's (empty), and does not return while the adapter or the function has
// the fault. The number is 0 if the command is not watched.
func (a *adapterCommands) begin(op proto.Opcode, vf string) uint32 {
	if !returning[op] {
		return 0
	}
	a.mu.Lock()
	p := &a.pending
	if p.next++; p.next == 0 {
		p.next = 1
	}
	n := p.next
	p.list = append(p.list, Pending{n, vf})
	gate, own := p.gates(vf)
	a.mu.Unlock()
	if gate != nil || own != nil {
		select {
		case <-gate: // nil: never
		case <-own:
		}
	}
	return n
}

// gates returns what a command waits at, for one of the two; nil: for none.
func (p *pending) gates(vf string) (gate, own chan struct{}) {
	t, hung := p.tenants[vf]
	if vf == "" || p.gate == nil && !hung {
		return p.gate, nil
	}
	if !hung {
		t = p.part(vf, false)
	}
	if t.own {
		return nil, t.gate
	}
	return p.gate, t.gate
}

// part gives a virtual function a gate of its own.
func (p *pending) part(vf string, own bool) tenantGate {
	t := tenantGate{own: own, gate: make(chan struct{})}
	if p.tenants == nil {
		p.tenants = map[string]tenantGate{}
	}
	p.tenants[vf] = t
	return t
}

func (a *adapterCommands) end(n uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.pending.list, func(p Pending) bool { return p.Number == n }); i >= 0 {
		a.pending.list = slices.Delete(a.pending.list, i, i+1)
	}
}

// Pending returns the commands that an adapter has been given and has not answered, of those that wait for nobody.
func (l *Log) Pending(adapter uint32) []Pending {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.pending.list)
}

// Hang makes the commands that wait for nobody wait until Release.
func (l *Log) Hang(adapter uint32) {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending.gate == nil {
		a.pending.gate = make(chan struct{})
	}
}

// Release ends Hang, and HangTenant of the adapter's virtual functions.
func (l *Log) Release(adapter uint32) {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.pending
	if p.gate != nil {
		close(p.gate)
		p.gate = nil
	}
	for _, t := range p.tenants {
		close(t.gate)
	}
	p.tenants = nil
}

// HangTenant makes the commands of a virtual function's programs that wait for nobody wait until ReleaseTenant or Release.
func (l *Log) HangTenant(adapter uint32, vf string) {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.pending.tenants[vf]
	switch {
	case !ok:
		a.pending.part(vf, true)
	case !t.own:
		t.own = true
		a.pending.tenants[vf] = t
	}
}

// ReleaseTenant ends HangTenant, and the waiting of those commands of the virtual function's programs that have been given. Commands that
// are given later wait again while the adapter has the fault.
func (l *Log) ReleaseTenant(adapter uint32, vf string) {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.pending.tenants[vf]; ok {
		close(t.gate)
		delete(a.pending.tenants, vf)
	}
}
