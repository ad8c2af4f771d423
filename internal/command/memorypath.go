package command

import "fmt"

// MemoryPath is how a driver accesses the memory of a program.
type MemoryPath uint32

// The paths.
const (
	MemoryMapped    MemoryPath = iota + 1 // it is in the driver's own address space
	MemoryProcessVM                       // process_vm_readv(2) and process_vm_writev(2)
	MemoryCopier                          // the program copies, as the driver tells it through shared memory
)

// String returns the path's name as status output and SOFTVPI_MEMORY_PATH have it.
func (p MemoryPath) String() string {
	switch p {
	case MemoryMapped:
		return "mapped"
	case MemoryProcessVM:
		return "process_vm"
	case MemoryCopier:
		return "copier"
	}
	return fmt.Sprintf("path %d", uint32(p))
}
