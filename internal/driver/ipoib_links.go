package driver

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/tun"
	"github.com/softvpi/softvpi/wire/ib"
)

// locate returns a function that tells which interface of the system s is.
func locate(s *tun.Device) func() (command.Interface, bool) {
	return func() (i command.Interface, ok bool) {
		at, err := s.Location()
		if err != nil {
			return i, false // the driver ends
		}
		i.Index, i.Namespace = uint32(at.Index), at.Namespace
		copy(i.Name[:], at.Name)
		return i, true
	}
}

// links returns the link-layer addresses of an adapter's interfaces that are interfaces of the system, too.
func (p *ipoibPorts) links(i uint32) (out []command.LinkAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.ports[i]
	if x == nil {
		return nil
	}
	for connection, f := range x.list {
		s := p.face(i, connection)
		if s == nil {
			continue
		}
		if at, ok := locate(s.Device)(); ok {
			out = append(out, linkAddress(at, f.Status()))
		}
	}
	return out
}

// linkAddress describes an interface of the system as its peers on the fabric know it: the broadcast address is that of the
// broadcast group, with the queue pair of multicast (RFC 4391 9.1.1).
func linkAddress(at command.Interface, s service.Status) command.LinkAddress {
	l := command.LinkAddress{Index: at.Index, Namespace: at.Namespace, Hardware: ipoib.Hardware}
	s.Address.Append(l.Address[:0])
	if !s.Broadcast.IsZero() {
		ipoib.Address{QPN: ib.QPMulticast, GID: s.Broadcast}.Append(l.Broadcast[:0])
	}
	return l
}
