package lan

import (
	"errors"
	"strconv"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// setMTU changes the longest IP packet that a port takes and sends, or all ports of a switch do: all, or none if it is wrong.
func setMTU(n *Network, now clock.Time, args []string) (string, error) {
	ends, err := n.ends(args[0])
	if err != nil {
		return "", err
	}
	mtu := n.fabric.Port(ends[0]).Config().MTU
	if args[1] != "all" {
		if mtu, err = strconv.Atoi(args[1]); err != nil {
			return "", refuse("mtu %q; allowed: bytes, such as 1500, or all", args[1])
		}
	}
	for _, e := range ends { // whose configurations have one MTU
		var field *ethernet.FieldError
		if err := n.fabric.Port(e).SetMTU(mtu); errors.As(err, &field) {
			return "", refuse("mtu %d; allowed: %s, or all", mtu, field.Want)
		}
		n.changed(now, e)
	}
	return "", nil
}
