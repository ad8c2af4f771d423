package service

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/tun"
)

// Connect connects an interface to its network interface of the system: until d is closed, what the system
// sends goes out, and settings made with ip(8) take effect. own are additional addresses of the interface.
// changed, if any, is called with all addresses after every change. d must be the System that the
// interface was added with.
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
