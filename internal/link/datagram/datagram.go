// Package datagram is a link of whole Ethernet frames over a pair of unix datagram sockets, one frame each: what QEMU has on
// the other side with
//
//	-netdev dgram,id=n,local.type=unix,local.path=OURS.REMOTE,remote.type=unix,remote.path=OURS.LOCAL
//
// or another such link. There is no system's stack on this side: the link answers for its stations' addresses and looks for
// their neighbours itself (package station). It works where unix datagram sockets do; on Windows Open fails with
// errors.ErrUnsupported.
package datagram

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
)

const (
	defaultMTU = 1500
	leastMTU   = 576   // RFC 791
	mostMTU    = 65535 // of an IP packet
	patience   = 100 * time.Millisecond
	// mostPath is the longest path of a socket (sockaddr_un, with the 0 at its end).
	mostPath = 107
	// extra is what a frame has before its IP packet: an Ethernet header with a VLAN tag.
	extra = 18
)

// Config describes a link.
type Config struct {
	// Local is the path of the socket on which frames arrive. Open makes it, in place of one that nobody has any more.
	Local string
	// Remote is the path of the other side's socket. What is sent while nobody has it is lost.
	Remote string
	// Stations are those served from the start.
	Stations []link.Station
	// MTU is the largest IP packet in bytes, 576 to 65535; 0: 1500.
	MTU int
	// Promiscuous links hand up every frame.
	Promiscuous bool
	// Notify, if not nil, is called on platforms without descriptors to wait on, when frames arrive and none were waiting,
	// or when Errors is due. It must not call the link.
	Notify func()
	// Patience is for how long the other side may take nothing before what is sent is lost, as by a virtual machine that is stopped;
	// 0: 100 ms, of which only the time counts in which it is tried. Portable links do not lose it.
	Patience time.Duration
	// Portable uses the sockets of package net on every platform.
	Portable bool
}

// Open opens a link. It returns a *station.FieldError for an invalid configuration, an error that wraps fs.ErrExist if
// somebody has the local path, and the system's errors.
func Open(cfg Config) (link.Link, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := vacate(cfg.Local); err != nil {
		return nil, err
	}
	if cfg.Portable {
		return openPortable(cfg)
	}
	return open(cfg)
}

func bad(field string, value any, want string) error {
	return &station.FieldError{Link: name, Field: field, Value: value, Want: want}
}

// name begins the link's errors.
const name = "datagram link"

// complete checks a configuration and fills in the defaults.
func (c *Config) complete() error {
	for _, p := range []struct{ field, path string }{{"Local", c.Local}, {"Remote", c.Remote}} {
		if p.path == "" || len(p.path) > mostPath || strings.HasPrefix(p.path, "@") || strings.Contains(p.path, "\x00") {
			return bad(p.field, fmt.Sprintf("%q", p.path), fmt.Sprintf("the path of a socket, of 1 to %d bytes", mostPath))
		}
	}
	if c.Local == c.Remote {
		return bad("Remote", fmt.Sprintf("%q", c.Remote), "another path than that of Local")
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	if c.MTU < leastMTU || c.MTU > mostMTU {
		return bad("MTU", c.MTU, fmt.Sprintf("0 (%d) or %d to %d", defaultMTU, leastMTU, mostMTU))
	}
	if c.Patience == 0 {
		c.Patience = patience
	}
	if c.Patience < 0 {
		return bad("Patience", c.Patience, fmt.Sprintf("0 (%v) or more", patience))
	}
	return nil
}

// vacate removes a socket that nobody has any more.
func vacate(path string) error {
	s, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: Local: %w", name, err)
	}
	if s.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s: Local %q is a file and no socket: %w", name, path, fs.ErrExist)
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("%s: Local %q: another process has the socket: %w", name, path, fs.ErrExist)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("%s: Local: %w", name, err)
	}
	return nil
}

// populate makes the stations that the link serves from the start.
func populate(s *station.Set, list []link.Station) error {
	for _, t := range list {
		if err := s.SetStation(t); err != nil {
			return err
		}
	}
	return nil
}
