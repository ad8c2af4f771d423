package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tun"
)

// The kinds of hosts of an Ethernet function.
const (
	HostTAP      = "tap"      // the system's own network stack, by a TAP interface
	HostDatagram = "datagram" // a virtual machine, by a pair of unix datagram sockets
	HostStream   = "stream"   // a virtual machine, by a unix stream socket
)

// HostSide describes who uses the Ethernet function of an adapter on a link of whole frames.
type HostSide struct {
	// Host is tap:NAME, datagram:PATH or stream:PATH; empty: the adapter has no Ethernet function.
	Host string `json:"host,omitempty"`
	// HostPeer is the path of the virtual machine's datagram socket; empty: that of the driver's with ".peer" behind it.
	HostPeer string `json:"host_peer,omitempty"`
	// Wake is a program with its arguments, run without a shell, when a frame wakes the host, which slept; empty: none. Its
	// environment has SOFTVPI_ADAPTER, SOFTVPI_WAKE_REASON (magic or pattern) and SOFTVPI_WAKE_PATTERN.
	Wake []string `json:"wake,omitempty"`
}

// HostKind returns the kind of the adapter's host and its name or path; empty: it has none.
func (h *HostSide) HostKind() (kind, at string) {
	kind, at, _ = strings.Cut(h.Host, ":")
	return kind, at
}

// completeHost fills in the defaults of an adapter's host, and checks it.
func (a *Adapter) completeHost(field func(string) string) error {
	if a.Host == "" && a.HostPeer == "" && len(a.Wake) == 0 {
		return nil
	}
	if !a.WholeFrames() {
		return api.Wrong(field("host, host_peer, wake"), "given", `nothing without "link": "interface", "tap", "datagram" or "switch"`)
	}
	if err := CheckHost(field("host"), a.Host); err != nil {
		return err
	}
	kind, at := a.HostKind()
	if kind == HostTAP && a.Interface == at {
		return api.Wrong(field("host"), fmt.Sprintf("%q", a.Host), "another interface than that of the adapter's link")
	}
	if a.FollowInterface {
		return api.Wrong(field("follow_interface"), "given", "nothing with a host: the addresses are the host's")
	}
	if len(a.Wake) > mostWords || len(a.Wake) > 0 && !filepath.IsAbs(a.Wake[0]) || slices.ContainsFunc(a.Wake, unprintable) {
		return api.Wrong(field("wake"), fmt.Sprintf("%q", a.Wake), fmt.Sprintf("the path of a program from the root, and its arguments: at most %d words",
			mostWords))
	}
	return a.completeHostPeer(field, kind, at)
}

// mostWords is how many words a command has at most.
const mostWords = 64

func unprintable(word string) bool { return strings.Contains(word, "\x00") }

func (a *Adapter) completeHostPeer(field func(string) string, kind, at string) error {
	if kind != HostDatagram {
		if a.HostPeer != "" {
			return api.Wrong(field("host_peer"), "given", `nothing without "host": "datagram:PATH"`)
		}
		return nil
	}
	a.HostPeer = HostPeer(at, a.HostPeer)
	return CheckHostPeer(field("host_peer"), a.HostPeer, at)
}

// CheckHost returns what is wrong with a host: TAP, datagram or stream socket, with its name or path.
func CheckHost(field, value string) error {
	kind, at, _ := strings.Cut(value, ":")
	switch kind {
	case HostTAP:
		if CheckTAP(field, at) != nil {
			return api.Wrong(field, fmt.Sprintf("%q", value), fmt.Sprintf("tap: and the name of an interface, of 1 to %d bytes", tun.MaxName))
		}
		return nil
	case HostDatagram, HostStream:
		if !filepath.IsAbs(at) || len(at) > mostSocket || strings.Contains(at, "\x00") {
			return api.Wrong(field, fmt.Sprintf("%q", value),
				fmt.Sprintf("%s: and the path of a socket from the root, of at most %d bytes", kind, mostSocket))
		}
		return nil
	}
	return api.Wrong(field, fmt.Sprintf("%q", value), "tap:NAME, datagram:PATH or stream:PATH")
}

// CheckTAP returns why no interface has a name.
func CheckTAP(field, name string) error {
	if name == "" || len(name) > tun.MaxName || strings.ContainsAny(name, "/ %:\x00\n\t") || name == "." || name == ".." {
		return api.Wrong(field, fmt.Sprintf("%q", name), fmt.Sprintf("the name of a network interface, of 1 to %d bytes; none", tun.MaxName))
	}
	return nil
}

// HostPeer returns the path of a virtual machine's datagram socket: what is given, or else the driver's with ".peer" behind it.
func HostPeer(at, given string) string {
	if given != "" {
		return given
	}
	return at + peerSuffix
}

// CheckHostPeer returns what is wrong with the path of a virtual machine's datagram socket; at is the driver's.
func CheckHostPeer(field, peer, at string) error {
	if !filepath.IsAbs(peer) || len(peer) > mostSocket || strings.Contains(peer, "\x00") || peer == at {
		return api.Wrong(field, fmt.Sprintf("%q", peer),
			fmt.Sprintf("the path of another socket than the driver's, from the root, of at most %d bytes", mostSocket))
	}
	return nil
}

// completeHosts checks that no two adapters have one host, and that no socket or interface is both a host's and a wire's.
func (c *Config) completeHosts() error {
	used := map[string]string{}
	for i := range c.Adapters {
		a := &c.Adapters[i]
		if a.Link == LinkDatagram {
			used[a.Datagram], used[a.Peer] = a.Name, a.Name
		} else if a.WholeFrames() && a.Link != LinkSwitch && a.Link != LinkFabric {
			used["interface "+a.Interface] = a.Name
		}
	}
	for i := range c.Adapters {
		a := &c.Adapters[i]
		kind, at := a.HostKind()
		if kind == "" {
			continue
		}
		names := []string{at}
		switch kind {
		case HostTAP:
			names[0] = "interface " + at
		case HostDatagram:
			names = append(names, a.HostPeer)
		}
		for _, n := range names {
			if who, taken := used[n]; taken {
				return api.Wrong(fmt.Sprintf("adapters[%d].host", i), fmt.Sprintf("%q", a.Host), fmt.Sprintf("another than what %q has", who))
			}
			used[n] = a.Name
		}
	}
	return nil
}
