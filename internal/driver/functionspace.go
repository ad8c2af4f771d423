package driver

import (
	"net"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/netspace"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// A virtual function with visible=netns is there for programs of the network namespace that its interface is in, as the kernel has it for
// RDMA devices with "rdma system set netns exclusive" (rdma-system(8)). Where the interface is, and where a program is, the kernel says
// when the program attaches: interfaces are moved by hand.

// visibility is the word for whether a virtual function is there in one namespace alone.
func visibility(alone bool) string {
	if alone {
		return "netns"
	}
	return "all"
}

// tenant is whose a program is that comes to a socket of a virtual function.
func (d *Driver) tenant(f *virtualFunction, c *net.UnixConn, who peer.Audience) server.Container {
	return server.Container{Audience: who, Quota: f.quota, Function: func() (uint32, error) {
		if err := d.functions.admits(f, c); err != nil {
			return 0, err
		}
		return d.functions.now(f)
	}}
}

// inSpace says whose a program is that comes to the driver's socket: it has the virtual function that is visible in its network namespace
// alone, the first if there are several, as its only device. Those of the driver's own namespace, and of such without one, see what there
// is for all.
func (d *Driver) inSpace(who peer.Audience) func(*net.UnixConn) server.Container {
	own, _ := netspace.Own()
	all := server.Container{Audience: who, Quota: new(budget.Quota)}
	return func(c *net.UnixConn) server.Container {
		if !d.functions.anyAlone() {
			return all
		}
		from, err := netspace.OfPeer(c)
		if err != nil || from == own {
			return all
		}
		if f := d.functions.aloneIn(from); f != nil {
			return d.tenant(f, c, who)
		}
		return all
	}
}

// anyAlone reports whether any virtual function is visible in a network namespace alone.
func (s *functions) anyAlone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		if f.alone {
			return true
		}
	}
	return false
}

// aloneIn returns the first virtual function that is visible in a network namespace alone; nil: there is none.
func (s *functions) aloneIn(space netspace.ID) *virtualFunction {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		if at, err := f.space(); f.alone && err == nil && at == space {
			return f
		}
	}
	return nil
}

// admits returns why a program may not have a virtual function: it is not in its network namespace. Whoever is not known to be there is
// not.
func (s *functions) admits(f *virtualFunction, c *net.UnixConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.alone {
		return nil
	}
	at, err := f.space()
	if err != nil {
		return command.Errorf(command.Access, "the virtual function %q is visible in the network namespace of its interface %s alone, "+
			"and where that is is not known: %v", f.cfg.Name, f.host.at, err)
	}
	from, err := netspace.OfPeer(c)
	if err != nil {
		return command.Errorf(command.Access, "the virtual function %q is visible in the network namespace %v alone, and that of the program "+
			"is not known: %v", f.cfg.Name, at, err)
	}
	if from != at {
		return command.Errorf(command.Access, "the virtual function %q is visible in the network namespace %v alone, where its interface %s is; "+
			"this program is in %v", f.cfg.Name, at, f.host.at, from)
	}
	return nil
}

// space returns where the interface of a virtual function is. The caller holds the list's mu.
func (f *virtualFunction) space() (netspace.ID, error) {
	if f.end == nil {
		return netspace.ID{}, command.Errorf(command.Removed, "it has none now")
	}
	p, ok := f.end.end.(hostside.Placed)
	if !ok && f.end.end == nil {
		return netspace.ID{}, command.Errorf(command.Unsupported, "it is IPoIB's")
	}
	if !ok {
		return netspace.ID{}, command.Errorf(command.Unsupported, "%s is no interface", f.end.end.Kind())
	}
	return p.Space()
}
