// Package server is a fabric's management service: programs open ports of a node over a unix socket, like
// /dev/infiniband/umadN on a machine with an adapter. The protocol is that of internal/umad/socket;
// agents, timeouts and transfers are implemented in internal/umad/agent.
package server

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

// Host runs a fabric. A MAD that CarryOn delivers, or that an agent of the fabric answers, is passed to
// the server's Take before CarryOn returns.
type Host interface {
	// Do runs do with the fabric locked.
	Do(do func(now clock.Time, f *fabric.Fabric))
	// CarryOn sends a MAD from a program at a place through the fabric, and may do other pending work.
	CarryOn(from fabric.Place, p *fabric.Packet) fabric.Result
}
