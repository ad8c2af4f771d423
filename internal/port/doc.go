// Package port is where functions meet the wire. A port carries any number of functions, each at a Station with MAC,
// VLAN and addresses of its own, and has a Wire for each of its links.
//
// A Port is pure. It does no I/O, starts no goroutine and reads no clock, and does not know who drives it. One turn is
//
//	p.Receive(now, w, packets)     // what the link of a wire has received, for each wire
//	p.Advance(now)                 // when now has reached Deadline
//	n := p.Transmit(now, out)      // while there are any and the links accept them:
//	w, k := p.Run(out[:n])         //   the wire for the first k of them, which leave unless they are Inside
//
// What arrives is classified: by the link where it arrived if that belongs to one station, else by MAC, VLAN, EtherType
// and UDP port, or by the GID on InfiniBand. What is sent is pulled: a Scheduler chooses a priority, and a function that
// has something at it is asked for packets, in turn. Nothing waits between function and wire, so that payloads can
// point into registered memory, and a priority that may not send, because the other end has paused it or for its rate,
// holds up nobody but those at the same priority.
//
// A packet handed out is valid until the next Transmit of the same port. Packets for another station on the same wire,
// which no network would bring back, are turned around inside: they wait for the port's next turn (turned.go), in the memory where
// they are if their function lends it, else in a copy, and then arrive as packets of the wire do. Frames of programs for rules of
// programs alone go the same way in the turn in which they are sent (straight.go), without the wait and the copy: a program may write
// to its memory at any time, so that it cannot be lent, and the queue pairs of the rules copy the frame at once anyway
// (go test ./internal/device -run "^$" -bench Frames). What a station of an Ethernet wire sends to itself is not the port's: the link
// brings it back, so that it is impaired, limited and captured as what goes to others (link/station). On InfiniBand the port brings back
// what a station sends to groups to which it is attached itself: no switch does.
package port
