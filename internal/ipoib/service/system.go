package service

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/tun"
)

// Connect joins an interface with its network interface of the system: what the system sends goes out, until d is closed, and what its user sets with
// ip(8) counts. own are addresses that the interface has beside. changed, if any, is told of all addresses after every change. d is the System that the interface was added with.
func (i *Interface) Connect(d *tun.Device, own []netip.Prefix, changed func([]netip.Prefix)) error {
	err := d.Watch(func() {
		s, err := d.Settings()
		if err != nil {
			return // it is gone
		}
		all := slices.Clone(own)
		for _, p := range s.Prefixes {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
		routes := make([]ipoib.Route, len(s.Routes))
		for n, r := range s.Routes {
			routes[n] = ipoib.Route(r)
		}
		i.Set(all, routes)
		if changed != nil {
			changed(all)
		}
	})
	if err != nil {
		return err
	}
	go d.Each(i.take, i.idle)
	return nil
}
