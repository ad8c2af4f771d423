package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// veth is a pair of virtual Ethernet devices, each in a network namespace of its own.
type veth struct {
	a, b netns.NsHandle
}

// The addresses, of a documentation network that is never routed.
var vethAddrs = [2]net.IPNet{
	{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(24, 32)},
	{IP: net.IPv4(192, 0, 2, 2), Mask: net.CIDRMask(24, 32)},
}

// newVeth creates the namespaces and the devices; root only.
func newVeth(mtu int) (v *veth, err error) {
	if v, err = newSpaces(); err != nil {
		return nil, err
	}
	if err := v.plug(mtu); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// newSpaces creates the namespaces; root only. They have no name: they vanish with the last handle and process.
func newSpaces() (v *veth, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("not root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	if err != nil {
		return nil, err
	}
	defer home.Close()
	defer func() { err = errors.Join(err, netns.Set(home)) }()
	v = &veth{netns.None(), netns.None()}
	if v.a, err = netns.New(); err != nil {
		return nil, err
	}
	if v.b, err = netns.New(); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// handles returns the ends of netlink in both namespaces.
func (v *veth) handles() (a, b *netlink.Handle, err error) {
	if a, err = netlink.NewHandleAt(v.a); err != nil {
		return nil, nil, err
	}
	if b, err = netlink.NewHandleAt(v.b); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// plug creates the pair of devices and brings it up.
func (v *veth) plug(mtu int) error {
	a, b, err := v.handles()
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	link := netlink.NewLinkAttrs()
	link.Name, link.MTU = "vpi0", mtu
	pair := netlink.NewVeth(link)
	pair.PeerName, pair.PeerMTU, pair.PeerNamespace = "vpi1", uint32(mtu), netlink.NsFd(v.b)
	if err := a.LinkAdd(pair); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	return errors.Join(configure(a, "vpi0", &vethAddrs[0]), configure(b, "vpi1", &vethAddrs[1]))
}

// adopt makes the interfaces vpi0 and vpi1, which a process has made in the first namespace, those of both.
func (v *veth) adopt(mtu int) error {
	a, b, err := v.handles()
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	for _, name := range []string{"vpi0", "vpi1"} {
		l, err := a.LinkByName(name)
		if err == nil {
			err = a.LinkSetMTU(l, mtu)
		}
		if err == nil && name == "vpi1" {
			err = a.LinkSetNsFd(l, int(v.b))
		}
		if err != nil {
			return fmt.Errorf("interface %q: %w", name, err)
		}
	}
	return errors.Join(configure(a, "vpi0", &vethAddrs[0]), configure(b, "vpi1", &vethAddrs[1]))
}

func configure(h *netlink.Handle, name string, addr *net.IPNet) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return errors.Join(h.AddrAdd(l, &netlink.Addr{IPNet: addr}), h.LinkSetUp(l), h.LinkSetUp(lo))
}

func (v *veth) close() error {
	var errs []error
	for _, h := range []netns.NsHandle{v.a, v.b} {
		if h.IsOpen() {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}

// startIn starts commands in a namespace, from a thread that is in it.
func startIn(ns netns.NsHandle) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		started := make(chan error, 1)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			err := netns.Set(ns)
			if err == nil {
				err = cmd.Start()
			}
			started <- err
		}()
		return <-started
	}
}

// vethPath returns the path across a pair of virtual devices with this MTU.
func vethPath(mtu int) (*path, func() error, error) {
	v, err := newVeth(mtu)
	if err != nil {
		return nil, nil, err
	}
	return v.path(fmt.Sprintf("veth MTU %d", mtu)), v.close, nil
}

func (v *veth) path(name string) *path {
	return &path{
		name:   name,
		server: side{addr: vethAddrs[0].IP.String(), start: startIn(v.a)},
		client: side{addr: vethAddrs[1].IP.String(), start: startIn(v.b)},
		more:   []string{"--mode", "embedded"},
	}
}

// hostPath returns a path between two namespaces that are not joined yet: adopt does that with the interfaces vpi0 and vpi1, which
// a process has made at the server's side.
func hostPath() (p *path, spaces *veth, done func() error, err error) {
	v, err := newSpaces()
	if err != nil {
		return nil, nil, nil, err
	}
	return v.path("hosts"), v, v.close, nil
}

// wiresPath returns a path across a pair of virtual devices that are the wires of adapters. join gives the interfaces host0 and host1,
// which drivers have made at the two sides for their hosts, addresses of a documentation network; these are returned.
func wiresPath(mtu int) (p *path, join func() ([2]string, error), done func() error, err error) {
	v, err := newVeth(mtu)
	if err != nil {
		return nil, nil, nil, err
	}
	join = func() (addrs [2]string, err error) {
		a, b, err := v.handles()
		if err != nil {
			return addrs, err
		}
		defer a.Close()
		defer b.Close()
		for i, h := range []*netlink.Handle{a, b} {
			addr := net.IPNet{IP: net.IPv4(203, 0, 113, byte(i+1)), Mask: net.CIDRMask(24, 32)}
			addrs[i] = addr.IP.String()
			err = errors.Join(err, configure(h, fmt.Sprint("host", i), &addr))
		}
		return addrs, err
	}
	return v.path("wires"), join, v.close, nil
}

// hostOf runs a shell script in a network namespace of its own, with additional environment variables, and
// returns a function that starts commands there.
func hostOf(script string, env ...string) (start func(*exec.Cmd) error, closeHost func() error, err error) {
	if os.Geteuid() != 0 {
		return nil, nil, errors.New("not root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	if err != nil {
		return nil, nil, err
	}
	defer home.Close()
	ns, err := netns.New()
	if err = errors.Join(err, netns.Set(home)); err != nil {
		return nil, nil, err
	}
	start = startIn(ns)
	var out bytes.Buffer
	cmd := exec.Command("sh", "-e", script)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), env...)
	err = start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w: %s", script, err, out.String()), ns.Close())
	}
	return start, ns.Close, nil
}
