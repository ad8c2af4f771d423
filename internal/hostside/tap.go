package hostside

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/tun"
)

// Addressed is an end whose interface has IP addresses, which are gone with it.
type Addressed interface {
	// Addresses returns the addresses of the interface, if Close removes it and it is in the network namespace of the calling thread:
	// without link-local ones, which the system makes itself.
	Addresses() ([]netip.Prefix, error)
	// Readdress gives them to an interface that did not exist before. The error is the system's.
	Readdress([]netip.Prefix) error
}

// OpenTAP opens a TAP interface in the network namespace of the calling thread, which is made if there is none of that name.
// One that is made stays when the process is killed, with its addresses, and is taken over by the next; Close removes it.
// One that somebody else has made to stay is used as it is, as far as the right to change it is missing. The error is
// errors.ErrUnsupported on other systems than Linux, or the system's.
func OpenTAP(name string) (End, error) {
	if name == "" || len(name) > tun.MaxName {
		return nil, fmt.Errorf("host: interface name %q: want 1 to %d bytes", name, tun.MaxName)
	}
	return openTAP(name)
}

// OpenTAPIn opens a TAP interface in a network namespace, given by its name (ip netns) or the path of its file. Errors are those of
// OpenTAP.
func OpenTAPIn(space, name string) (End, error) {
	if name == "" || len(name) > tun.MaxName {
		return nil, fmt.Errorf("host: interface name %q: want 1 to %d bytes", name, tun.MaxName)
	}
	return openTAPIn(space, name)
}

// InSpace calls do in a network namespace, by name (ip netns) or path. Goroutines that do starts are not there. The error is that of do, or
// says why the namespace is not there.
func InSpace(space string, do func() error) error { return inSpace(space, do) }
