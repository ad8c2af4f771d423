// Package tap is a link of whole Ethernet frames through a TAP interface of Linux: what the system sends on the interface, or a
// bridge that it is a port of, arrives here. On this side there is no system's stack, whatever addresses the interface has:
// the link answers for its stations' addresses and looks for their neighbours itself (package station).
//
// Opening one takes CAP_NET_ADMIN, or an interface that was made to stay for this user (ip tuntap add mode tap user NAME).
package tap

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/tun"
)

const (
	leastMTU = 576   // RFC 791
	mostMTU  = 65521 // of the system's TAP interfaces
	name     = "tap link"
)

// Config describes a link.
type Config struct {
	// Name of the interface, which is made if there is none, at most 15 bytes; empty: the system chooses one.
	Name string
	// MTU is set on the interface, 576 to 65521; 0: it stays as it is.
	MTU int
	// Up brings the interface up; otherwise the system's administrator does.
	Up bool
	// Stations are those served from the start.
	Stations []link.Station
	// Promiscuous links hand up every frame.
	Promiscuous bool
}

// Link is an open link.
type Link interface {
	link.Link
	// Name is that of the interface.
	Name() string
}

// Open opens a link in the network namespace of the calling thread. It returns a *station.FieldError for an invalid
// configuration, errors.ErrUnsupported on other systems than Linux, and the system's errors.
func Open(cfg Config) (Link, error) {
	if len(cfg.Name) > tun.MaxName {
		return nil, bad("Name", fmt.Sprintf("%q", cfg.Name), fmt.Sprintf("at most %d bytes", tun.MaxName))
	}
	if cfg.MTU != 0 && (cfg.MTU < leastMTU || cfg.MTU > mostMTU) {
		return nil, bad("MTU", cfg.MTU, fmt.Sprintf("0 (unchanged) or %d to %d", leastMTU, mostMTU))
	}
	return open(cfg)
}

func bad(field string, value any, want string) error {
	return &station.FieldError{Link: name, Field: field, Value: value, Want: want}
}
