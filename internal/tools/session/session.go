// Package session opens the adapter for a tool: the driver's, if it runs and has the address, otherwise
// one in the tool's own process.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/eth"
)

// Mode is how a tool wants to reach an adapter; the zero value means attached if a suitable driver runs,
// otherwise embedded.
type Mode struct {
	mode  verbs.Mode
	name  string     // of the tool, for the driver's status
	local netip.Addr // of a client's own adapter; zero: whichever reaches the server
	flag  string     // the option that set local
	say   func(format string, args ...any)
}

// alone tells the user that there is a driver but that the adapter is not the driver's, so that its
// settings do not apply.
func (m *Mode) alone(why string, a netip.Addr) {
	if m.say != nil {
		m.say("the driver has no adapter %s %v: this one is embedded in the tool (--mode embedded does so silently, attached fails)", why,
			a)
	}
}

// Flag adds the option --mode to a tool.
func (m *Mode) Flag(f *tool.Flags) {
	m.name, m.say = f.Name(), f.Say
	f.Func("mode", "`mode`: attached to the driver, embedded in this process, or auto (default)", func(s string) error {
		switch s {
		case "auto":
			m.mode = 0
		case "attached":
			m.mode = verbs.Attached
		case "embedded":
			m.mode = verbs.Embedded
		default:
			return errors.New("allowed: auto, attached, embedded")
		}
		return nil
	})
}

// LocalFlag adds the option for the address of a client's own adapter.
func (m *Mode) LocalFlag(f *tool.Flags, name string) {
	m.flag = "-" + name
	f.Addr(&m.local, name, "of the client's own adapter (default: one that reaches the server)")
}

// Local returns the address given by LocalFlag's option, or the zero address.
func (m *Mode) Local() netip.Addr { return m.local }

// Check refuses a local address that contradicts the other options.
func (m *Mode) Check(server bool, remote netip.Addr) error {
	switch {
	case !m.local.IsValid():
		return nil
	case server:
		return tool.Usagef("%s is not for a server; allowed: for a client", m.flag)
	case m.local.Is4() != remote.Is4():
		return tool.Usagef("%s %v is not of the family of the server's address %v; allowed: both IPv4 or both IPv6", m.flag, m.local,
			remote)
	}
	return nil
}

// Session is an open adapter.
type Session struct {
	Provider *nd.Provider
	Adapter  *nd.Adapter
	Local    netip.Addr
}

// Mode returns "attached" or "embedded".
func (s *Session) Mode() string { return s.Provider.Host().Mode().String() }

// Close closes the adapter.
func (s *Session) Close() error { return errors.Join(s.Adapter.Close(), s.Provider.Close()) }

// Serve opens the adapter at the local address.
func Serve(ctx context.Context, m Mode, local netip.Addr) (*Session, error) {
	p, err := attached(ctx, m)
	if err != nil {
		return nil, err
	}
	if p != nil {
		s, err := open(p, local)
		if !errors.Is(err, nd.ErrInvalidAddress) || m.mode == verbs.Attached {
			return s, err
		}
		m.alone("at", local) // the driver has other addresses: this one can be embedded
	}
	return embed(ctx, local)
}

// Dial opens the adapter from which to reach remote: the one that the user named, otherwise the one chosen
// by the routes.
func Dial(ctx context.Context, m Mode, server netip.AddrPort) (*Session, error) {
	if m.local.IsValid() {
		return Serve(ctx, m, m.local)
	}
	remote := server.Addr()
	p, err := attached(ctx, m)
	if err != nil {
		return nil, err
	}
	if p != nil {
		from, err := p.LocalAddress(remote)
		_, foreign := p.Host().DeviceByAddr(remote)
		if err == nil && foreign != nil && from.IsLoopback() != remote.IsLoopback() {
			err = nd.ErrNetworkUnreachable
		}
		if err == nil {
			return open(p, from)
		}
		p.Close()
		if m.mode == verbs.Attached {
			if errors.Is(err, nd.ErrNetworkUnreachable) {
				err = unreachable(server, nd.StatusNetworkUnreachable, "the driver has no adapter that reaches this address")
			}
			return nil, err
		}
		m.alone("that reaches", remote)
	}
	return embedTowards(ctx, server, m.flag)
}

// attached returns the driver's provider, or nil if the mode or the absence of a driver requires
// embedding.
func attached(ctx context.Context, m Mode) (*nd.Provider, error) {
	if m.mode == verbs.Embedded {
		return nil, nil
	}
	p, err := nd.Open(ctx, nd.Options{Mode: verbs.Attached, Name: m.name})
	if err == nil {
		return p, nil
	}
	if m.mode == verbs.Attached || !noDriver(err) {
		return nil, err
	}
	return nil, nil
}

// noDriver reports whether an error means that no driver runs, rather than that it refuses.
func noDriver(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errors.ErrUnsupported)
}

// Addresses returns the addresses of the adapters: the driver's, otherwise that of the adapter that a
// program embeds by default.
func Addresses(ctx context.Context, m Mode) ([]netip.Addr, error) {
	p, err := Open(ctx, m)
	if err != nil {
		return nil, err
	}
	list, err := p.QueryAddressList()
	return list, errors.Join(err, p.Close())
}

// Open opens the provider for a tool that needs no particular adapter.
func Open(ctx context.Context, m Mode) (*nd.Provider, error) {
	return nd.Open(ctx, nd.Options{Mode: m.mode, Name: m.name})
}

func open(p *nd.Provider, local netip.Addr) (*Session, error) {
	a, err := p.OpenAdapterAt(local)
	if err != nil {
		p.Close()
		return nil, err
	}
	return &Session{p, a, local}, nil
}

func embed(ctx context.Context, local netip.Addr) (*Session, error) {
	p, err := nd.Open(ctx, nd.Options{Mode: verbs.Embedded, Embed: verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: local}}}})
	if err != nil {
		return nil, err
	}
	return open(p, local)
}

// embedTowards embeds an adapter from which remote can be reached. On the loopback network of Linux and
// Windows any address of 127.0.0.0/8 will do, so that many programs can run side by side.
func embedTowards(ctx context.Context, server netip.AddrPort, flag string) (*Session, error) {
	const tries = 8
	remote := server.Addr()
	if remote.Is4() && remote.IsLoopback() && runtime.GOOS != "darwin" {
		var err error
		for range tries {
			var s *Session
			if s, err = embed(ctx, randomLoopback()); err == nil {
				return s, nil
			}
			if !errors.Is(err, nd.ErrSharingViolation) {
				break
			}
		}
		return nil, err
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, eth.PortRoCEv2))) // sends nothing
	if err != nil {
		return nil, unroutable(server, err)
	}
	local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	c.Close()
	if local == remote {
		return embedBeside(ctx, server, flag)
	}
	return embed(ctx, local)
}

// embedBeside embeds an adapter to reach another process on this machine, to which the address remote
// belongs.
func embedBeside(ctx context.Context, server netip.AddrPort, flag string) (*Session, error) {
	remote := server.Addr()
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		ip = ip.Unmap()
		if ip == remote || ip.Is4() != remote.Is4() || ip.IsLoopback() != remote.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		s, err := embed(ctx, ip)
		if err == nil || !errors.Is(err, nd.ErrSharingViolation) {
			return s, err
		}
	}
	// If its address is free nobody is there: connecting will report that.
	s, err := embed(ctx, remote)
	if !errors.Is(err, nd.ErrSharingViolation) {
		return s, err
	}
	return nil, unreachable(server, nd.StatusInvalidAddress, fmt.Sprintf(
		"an embedded adapter needs an address of its own; the server has this one, and this machine has no other free one of its kind: "+
			"%s, or name another address of this machine (%s ADDRESS)", second(runtime.GOOS, remote), flag))
}

// second says how to get a second address on a system.
func second(system string, remote netip.Addr) string {
	switch {
	case system == "linux":
		return fmt.Sprintf("let server and client attach to one driver (softvpi up --adapter NAME=%v)", remote)
	case system == "darwin" && remote.IsLoopback() && remote.Is4():
		return "add one (sudo ifconfig lo0 alias 127.0.0.2)"
	case system == "darwin" && remote.IsLoopback():
		return "add one (sudo ifconfig lo0 inet6 alias fd00::2)"
	}
	return "add one to an interface"
}

// unroutable returns the error for a server that the system has no route to.
func unroutable(server netip.AddrPort, err error) error {
	status := nd.StatusNetworkUnreachable
	if errors.Is(err, syscall.EHOSTUNREACH) || runtime.GOOS == "windows" && errors.Is(err, syscall.Errno(wsaHostUnreachable)) {
		status = nd.StatusHostUnreachable
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err // the address and the operation are already in the message
	}
	return unreachable(server, status, err.Error())
}

// wsaHostUnreachable is WSAEHOSTUNREACH, Windows' code for it.
const wsaHostUnreachable = 10065

func unreachable(server netip.AddrPort, status nd.Status, why string) error {
	return &nd.Error{Status: status, Op: "Connector.Connect", Addr: server, Detail: why}
}

func randomLoopback() netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(16 + rand.N(200)), byte(rand.N(256)), byte(1 + rand.N(254))})
}

// Name returns the name of the adapter, such as "Ethernet 1".
func (s *Session) Name() string {
	d, err := s.Provider.Host().DeviceByAddr(s.Local)
	if err != nil {
		return s.Local.String()
	}
	return d.Name()
}
