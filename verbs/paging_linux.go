package verbs

import (
	"crypto/rand"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/reach"
)

// paging reaches memory of this process that is on demand, for an embedded adapter. Where a page is missing the adapter itself would
// fault, and the program with it; the system's calls for the memory of other processes return an error.
type paging struct {
	wake   func()
	movers reach.Movers

	mu sync.Mutex
	vm *reach.ProcessVM // from the first region on
}

func newPaging(wake func()) *paging { return &paging{wake: wake} }

// reach implements device.ClientConfig.OnDemand.
func (p *paging) reach(r command.RegisterMemory) (device.Reached, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.vm == nil {
		vm, err := p.open()
		if err != nil {
			return device.Reached{}, err
		}
		p.vm = vm
	}
	return p.vm.Reach(r)
}

// open tries the calls.
func (p *paging) open() (*reach.ProcessVM, error) {
	vm := reach.NewProcessVM(os.Getpid(), &p.movers, p.wake)
	probe := new([32]byte)
	nonce := [16]byte{}
	_, _ = rand.Read(nonce[:]) // never fails
	copy(probe[:], nonce[:])
	var pin runtime.Pinner
	pin.Pin(probe)
	defer pin.Unpin()
	if err := vm.Probe(uint64(uintptr(unsafe.Pointer(probe))), nonce); err != nil {
		vm.Close()
		return nil, command.Errorf(command.Unsupported, "no paging on demand in the adapter's own process: %v", err)
	}
	return vm, nil
}

// close is called when the adapters have let go of all regions.
func (p *paging) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.vm != nil {
		p.vm.Close()
		p.vm = nil
	}
}
