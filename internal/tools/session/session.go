// Package session opens the adapter that a tool works on: the driver's, where it
// runs and has the address, else one of the tool's own process.
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
)

// Mode is how a tool wants to reach an adapter; the zero value: attached where
// a driver runs that can serve it, else embedded.
type Mode struct {
	mode  verbs.Mode
	name  string     // of the tool, for the driver's status
	local netip.Addr // of a client's own adapter; zero: whichever reaches the server
	flag  string     // the option that local is from
	say   func(format string, args ...any)
}

// alone tells the user that there is a driver, and that the adapter is not the driver's nevertheless: what he set there does not hold for it.
func (m *Mode) alone(why string, a netip.Addr) {
	if m.say != nil {
		m.say("the driver has no adapter %s %v: this one is embedded in the tool (--mode embedded does so without a word, attached fails)", why, a)
	}
}

// Flag adds the option --mode to the options of a tool.
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

// LocalFlag adds the option by which a client names the address of its own
// adapter.
func (m *Mode) LocalFlag(f *tool.Flags, name string) {
	m.flag = "-" + name
	f.Addr(&m.local, name, "of the client's own adapter (default: one that reaches the server)")
}

// Local returns the address that LocalFlag's option gave; the zero address where
// it was not given.
func (m *Mode) Local() netip.Addr { return m.local }

// Check refuses a local address that does not go with the rest.
func (m *Mode) Check(server bool, remote netip.Addr) error {
	switch {
	case !m.local.IsValid():
		return nil
	case server:
		return tool.Usagef("%s is not for a server; allowed: for a client", m.flag)
	case m.local.Is4() != remote.Is4():
		return tool.Usagef("%s %v is not of the family of the server's address %v; allowed: both IPv4 or both IPv6", m.flag, m.local, remote)
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

// Close gives the adapter back.
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
		m.alone("at", local) // the driver has other addresses: this one is ours to embed
	}
	return embed(ctx, local)
}

// Dial opens the adapter from which to reach remote: the one that the user
// named, else the one that the routes choose.
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

// attached returns the driver's provider; nil where the mode or the lack of a
// driver asks to embed.
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

// noDriver tells a driver that does not run from one that refuses.
func noDriver(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errors.ErrUnsupported)
}

// Addresses lists the addresses of the adapters: the driver's, else that of the
// adapter that a program embeds by default.
func Addresses(ctx context.Context, m Mode) ([]netip.Addr, error) {
	p, err := Open(ctx, m)
	if err != nil {
		return nil, err
	}
	list, err := p.QueryAddressList()
	return list, errors.Join(err, p.Close())
}

// Open opens the provider for a tool that needs no adapter in particular.
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

// embedTowards embeds an adapter from which remote can be reached. On the
// loopback network of Linux and Windows every address of 127.0.0.0/8 serves, so
// that many programs can run side by side.
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
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, 4791))) // sends nothing
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

// embedBeside embeds an adapter to reach another process of this machine: the
// address remote belongs to that one.
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
	// Nobody is there where its address is free: connecting then says so.
	s, err := embed(ctx, remote)
	if !errors.Is(err, nd.ErrSharingViolation) {
		return s, err
	}
	return nil, unreachable(server, nd.StatusInvalidAddress, fmt.Sprintf(
		"an embedded adapter has its address for itself, the server has this one, and this machine has no other of the kind that is free: "+
			"%s, or name another address of this machine (%s ADDRESS)", second(runtime.GOOS, remote), flag))
}

// second says how one comes to a second address on a system.
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

// unroutable is the error of a server that the system has no route to.
func unroutable(server netip.AddrPort, err error) error {
	status := nd.StatusNetworkUnreachable
	if errors.Is(err, syscall.EHOSTUNREACH) || runtime.GOOS == "windows" && errors.Is(err, syscall.Errno(wsaHostUnreachable)) {
		status = nd.StatusHostUnreachable
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err // the address and the operation stand before it already
	}
	return unreachable(server, status, err.Error())
}

// wsaHostUnreachable is WSAEHOSTUNREACH, by which Windows says it.
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
