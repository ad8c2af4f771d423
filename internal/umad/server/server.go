// Package server is the service of the management datagrams of a fabric: programs open ports of a node over a unix
// socket, as they open /dev/infiniband/umadN on a machine with an adapter. The protocol is that of internal/umad/socket;
// what agents, time-outs and transfers do is in internal/agent.
package server

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

// Host is what runs a fabric. A MAD that CarryOn takes somewhere, or that an agent of the fabric answers, it hands to the
// server's Take before it returns.
type Host interface {
	// Do lets do work on the fabric.
	Do(do func(now clock.Time, f *fabric.Fabric))
	// CarryOn takes a MAD from a program at a place through the fabric, and may work for others there.
	CarryOn(from fabric.Place, p *fabric.Packet) fabric.Result
}
