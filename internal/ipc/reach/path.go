// Package reach gives a driver access to memory of a program that is not shared: by the system calls for
// memory of another process, or by a copier in the program, which executes what the driver writes to
// shared memory.
package reach

import "fmt"

// How the driver accesses memory of a client: values of command.Memory.Path.
const (
	PathMapped    uint32 = 1
	PathProcessVM uint32 = 2
	PathCopier    uint32 = 3
)

// PathName returns the name of a value of command.Memory.Path.
func PathName(p uint32) string {
	switch p {
	case PathMapped:
		return "mapped"
	case PathProcessVM:
		return "process_vm"
	case PathCopier:
		return "copier"
	}
	return fmt.Sprintf("path %d", p)
}
