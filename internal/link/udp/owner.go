package udp

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// Owner is who probably has an address, as far as the system reveals it.
type Owner struct {
	PID     int    // 0 if unknown
	Process string // name of the process, "" if unknown
	UID     int    // user of the socket, -1 if unknown
	// Kernel says that the socket belongs to no process: on Linux most likely to the Soft-RoCE driver
	// rdma_rxe.
	Kernel bool
}

// String names the owner in words.
func (o Owner) String() string {
	switch {
	case o.Kernel:
		return "the kernel, most likely its Soft-RoCE driver (rdma_rxe)"
	case o.PID != 0 && strings.Contains(o.Process, "softvpi"):
		return fmt.Sprintf("another softvpi, process %d", o.PID)
	case o.PID != 0:
		return fmt.Sprintf("process %d (%s)", o.PID, o.Process)
	case o.UID >= 0:
		return fmt.Sprintf("a process of user %d, or the kernel", o.UID)
	}
	return "another socket"
}

// AddressInUseError reports that an address is taken, and by whom. It unwraps to syscall.EADDRINUSE.
type AddressInUseError struct {
	Addr  netip.AddrPort
	Owner Owner
}

func (e *AddressInUseError) Error() string {
	return fmt.Sprintf("udp link: address %v is in use by %v", e.Addr, e.Owner)
}

// Unwrap makes errors.Is(err, syscall.EADDRINUSE) true.
func (e *AddressInUseError) Unwrap() error { return syscall.EADDRINUSE }
