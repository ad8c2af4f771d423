package station

import (
	"encoding/binary"
	"errors"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// newsTurns limits how many messages one call of Follow reads.
const newsTurns = 64

// News are changes of the system's interfaces, addresses and neighbours, in the network namespace in which it was subscribed
// to. Its methods belong to the owner of the link.
type News struct {
	socket *nl.NetlinkSocket
	from   [4096]byte // messages
}

// Changes are what may have changed.
type Changes struct{ Neighbours, Addresses, Interfaces bool }

// Subscribe asks for news of groups (linux/rtnetlink.h, RTNLGRP_*).
func Subscribe(groups ...uint) (*News, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, os.NewSyscallError("netlink", err)
	}
	return &News{socket: s}, nil
}

// Descriptor is readable while there are news.
func (n *News) Descriptor() int { return n.socket.GetFd() }

// Follow reads the news. It does not wait.
func (n *News) Follow() (c Changes) {
	for range newsTurns {
		length, _, err := unix.Recvfrom(n.Descriptor(), n.from[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) || length == 0 && err == nil {
			return c
		}
		if err != nil { // news were lost
			return Changes{true, true, true}
		}
		c.read(n.from[:length])
	}
	return c
}

// Close ends the subscription.
func (n *News) Close() { n.socket.Close() }

// read notes the kinds of messages.
func (c *Changes) read(b []byte) {
	for len(b) >= unix.SizeofNlMsghdr {
		n, kind := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint16(b[4:])
		switch kind {
		case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
			c.Neighbours = true
		case unix.RTM_NEWADDR, unix.RTM_DELADDR:
			c.Addresses = true
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			c.Interfaces = true
		}
		n = (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
		if n < unix.SizeofNlMsghdr || int(n) > len(b) {
			return
		}
		b = b[n:]
	}
}
