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

// pending are the commands that an adapter is carrying out, and the fault of not doing so.
type pending struct {
	list []uint32      // their numbers
	next uint32        // number of the next
	gate chan struct{} // a fault: they wait until it is closed; nil: none
}

// begin notes a command, and does not return while the adapter has the fault. The number is 0 if the command is not watched.
func (a *adapterCommands) begin(op proto.Opcode) uint32 {
	if !returning[op] {
		return 0
	}
	a.mu.Lock()
	p := &a.pending
	if p.next++; p.next == 0 {
		p.next = 1
	}
	n, gate := p.next, p.gate
	p.list = append(p.list, n)
	a.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return n
}

func (a *adapterCommands) end(n uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.pending.list, n); i >= 0 {
		a.pending.list = slices.Delete(a.pending.list, i, i+1)
	}
}

// Pending returns the numbers of the commands that an adapter has been given and has not answered, of those that wait for nobody.
func (l *Log) Pending(adapter uint32) []uint32 {
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

// Release ends Hang.
func (l *Log) Release(adapter uint32) {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending.gate != nil {
		close(a.pending.gate)
		a.pending.gate = nil
	}
}
