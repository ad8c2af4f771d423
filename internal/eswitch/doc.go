// Package eswitch is the switch inside an adapter: between the wire, the physical function, its virtual functions and its virtual
// ports (WinOF-2 24.4, Single Root I/O Virtualization; WinOF 5.50, 4.5.3). It is pure: it gets a frame with the port that sent it, and
// says to which ports the frame goes and what each does with its VLAN tag.
//
// Its files: port (the ports and what is set for each), vlan (who is in which VLAN, and tags), spoof (what virtual functions may
// send), dhcp (the redirection of DHCP), forward (where a frame goes), rate (who sends next, and how fast), counters.
package eswitch
