package gid

import (
	"net"
	"net/netip"
)

// Interfaces are the network interfaces of this host, with what they have at a moment.
type Interfaces struct {
	Namespace uint64 // inode of their network namespace; 0: the system has none
	holders   map[netip.Addr]*net.Interface
	loopback  map[netip.Prefix]*net.Interface // all addresses of a prefix are the loopback interface's
}

// Holders returns the interfaces of this host; those that the system does not tell are left out.
func Holders() Interfaces {
	all := Interfaces{Namespace: Namespace(), holders: map[netip.Addr]*net.Interface{}, loopback: map[netip.Prefix]*net.Interface{}}
	ifs, err := net.Interfaces()
	if err != nil {
		return all
	}
	for n := range ifs {
		list, err := ifs[n].Addrs()
		if err != nil {
			continue
		}
		for _, a := range list {
			if p, ok := a.(*net.IPNet); ok {
				all.add(&ifs[n], p)
			}
		}
	}
	return all
}

func (i *Interfaces) add(holder *net.Interface, p *net.IPNet) {
	addr, ok := netip.AddrFromSlice(p.IP)
	if !ok {
		return
	}
	addr = addr.Unmap()
	if i.holders[addr] == nil {
		i.holders[addr] = holder
	}
	if bits, _ := p.Mask.Size(); holder.Flags&net.FlagLoopback != 0 {
		i.loopback[netip.PrefixFrom(addr, bits).Masked()] = holder
	}
}

// Of returns the interface that has an address. The loopback interface has all of its prefixes (127.0.0.0/8).
func (i *Interfaces) Of(addr netip.Addr) (net.Interface, bool) {
	if h := i.holders[addr]; h != nil {
		return *h, true
	}
	for p, h := range i.loopback {
		if p.Contains(addr) {
			return *h, true
		}
	}
	return net.Interface{}, false
}
