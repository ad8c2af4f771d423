package tun

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Watch calls changed, now and whenever the result of Settings may have changed, until Close. It follows
// an interface that is moved to another network namespace, where the administrator configures it anew.
func (d *Device) Watch(changed func()) error {
	n, err := d.subscribe()
	if err != nil {
		return err
	}
	go func() {
		for {
			changed()
			for n.next() {
				changed()
			}
			close(n.end)
			select {
			case <-d.done:
				return
			default:
			}
			if d.follow() != nil {
				return // it is gone, or the kernel cannot tell its location
			}
			if n, err = d.subscribe(); err != nil {
				return
			}
		}
	}()
	return nil
}

// news are the system's notifications for an interface at a site.
type news struct {
	index  int
	addrs  chan netlink.AddrUpdate
	routes chan netlink.RouteUpdate
	links  chan netlink.LinkUpdate
	end    chan struct{} // closed to end the subscription
	done   chan struct{} // of the Device
}

func (d *Device) subscribe() (*news, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := &news{d.at.index, make(chan netlink.AddrUpdate, 16), make(chan netlink.RouteUpdate, 16), make(chan netlink.LinkUpdate, 16),
		make(chan struct{}), d.done}
	err := errors.Join(
		netlink.AddrSubscribeWithOptions(n.addrs, n.end, netlink.AddrSubscribeOptions{Namespace: &d.at.space}),
		netlink.RouteSubscribeWithOptions(n.routes, n.end, netlink.RouteSubscribeOptions{Namespace: &d.at.space}),
		netlink.LinkSubscribeWithOptions(n.links, n.end, netlink.LinkSubscribeOptions{Namespace: &d.at.space}),
	)
	if err != nil {
		close(n.end)
		return nil, fmt.Errorf("interface %q: netlink: %w", d.name, err)
	}
	return n, nil
}

// next waits for a change of the interface; false: it is no longer there, or the device is closed.
func (n *news) next() bool {
	for n.addrs != nil || n.routes != nil || n.links != nil {
		select { // a channel is closed when its socket is
		case <-n.done:
			return false
		case u, ok := <-n.addrs:
			if !ok {
				n.addrs = nil
			} else if u.LinkIndex == n.index {
				return true
			}
		case u, ok := <-n.routes:
			if !ok {
				n.routes = nil
			} else if u.LinkIndex == n.index {
				return true
			}
		case u, ok := <-n.links:
			if !ok {
				n.links = nil
			} else if int(u.Index) == n.index {
				return u.Header.Type != unix.RTM_DELLINK
			}
		}
	}
	return false
}
