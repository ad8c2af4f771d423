// Package netspace tells network namespaces apart.
package netspace

import "fmt"

// ID identifies a network namespace for as long as anybody is in it or holds it open: the device and the inode of its file, which
// namespaces(7) names as what tells whether two are the same. The zero value is none.
type ID struct{ Device, Inode uint64 }

// String returns it as the links in /proc/PID/ns have it.
func (i ID) String() string { return fmt.Sprintf("net:[%d]", i.Inode) }
