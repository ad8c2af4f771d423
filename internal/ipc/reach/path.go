// Package reach is how a driver reaches memory of a program that does not share it: by the system's calls for memory of another
// process, or by a copier in the program, which carries out what the driver writes down in memory that both share.
package reach

import "fmt"

// How the driver reaches memory of a client: values of command.Memory.Path.
const (
	PathMapped    uint32 = 1
	PathProcessVM uint32 = 2
	PathCopier    uint32 = 3
)

// PathName names a value of command.Memory.Path.
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
