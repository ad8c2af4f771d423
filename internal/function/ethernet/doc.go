// Package ethernet is an Ethernet function of a port: a network card for a host, a guest or a program. It takes whole frames
// from its host and passes whole frames to it, and does in between what the manuals' adapters do: filters, receive side
// scaling, checksums, large sends and segment coalescing, VLAN tags, queues with moderated completions (WinOF 5.50, 4.1, 4.6
// and 4.9; WinOF-2 1.21, 3.1 and 3.4; "WinOF-2 Ethernet Network").
//
// A Function is pure: it is driven by its port (port.Function), and by its Host, which posts sends and is told what was
// received. Who that host is, an interface of the system, a virtual machine or a program, it does not know.
//
//	f, err := ethernet.New(cfg, host)
//	s := p.Attach(f, port.Station{MAC: f.MAC(), Kind: port.Ethernet})
//	s.Plug(wire, netip.Addr{}, nil)
//	f.SetWire(s)                                // what the wire carries: s.TakesLarge
//	err = f.Send(now, queue, &ethernet.Send{…}) // then the port is to have a turn
//
// Frames that pass between functions and ports say beside their bytes what is left to do for them (offload.Task). So a large
// send of TCP goes unsplit, and its checksum unmade, from one function to another, and to any wire that carries it so; a
// function finishes it only for a wire that does not, segment by segment while the port pulls them.
//
// What arrives is filtered, hashed and checked in Receive, and indicated to the host by queues. A queue that is polled, or
// whose interrupt is due, indicates frames where the wire has them, without a copy; while its interrupts are moderated they
// wait in its ring, and what finds no room there is lost and counted.
//
// The files: keys and config are the registry keys; host is what uses a function; receive, indicate and completion are one
// direction; send, transmit and sent the other. Its subpackages are filter, queue (the rings), and rss.
package ethernet
