package udp

import (
	"net"
	"net/netip"
)

// InterfaceOf returns the network interface that has addr. The loopback interface has every address of
// 127.0.0.0/8. ok is false if there is none.
func InterfaceOf(addr netip.Addr) (ifi net.Interface, ok bool) {
	ifi, ok, _ = FindInterface(addr)
	return ifi, ok
}

// FindInterface is InterfaceOf that tells an address which no interface has from one of which the system does not say: err is the
// system's.
func FindInterface(addr netip.Addr) (ifi net.Interface, ok bool, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, false, err
	}
	for _, ifi := range all {
		has, e := holds(&ifi, addr)
		if has {
			return ifi, true, nil
		}
		if e != nil {
			err = e
		}
	}
	return net.Interface{}, false, err
}

func holds(ifi *net.Interface, addr netip.Addr) (bool, error) {
	addrs, err := ifi.Addrs()
	if err != nil {
		return false, err
	}
	if zone := addr.Zone(); zone != "" && zone != ifi.Name {
		return false, nil
	}
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if prefix.Addr().Unmap().WithZone("") == addr.WithZone("") {
			return true, nil
		}
		if ifi.Flags&net.FlagLoopback != 0 && addr.IsLoopback() && prefix.Contains(addr) {
			return true, nil
		}
	}
	return false, nil
}
