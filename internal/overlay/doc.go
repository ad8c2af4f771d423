// Package overlay is network virtualization on a virtual switch (WinOF-2 1.21, 3.3.2 and appendix A; RFC 7348, RFC 7637): what adapters of
// a virtual subnet send goes to others of the subnet, whose hosts are told apart by provider addresses, inside VXLAN or NVGRE. Where
// everybody is say records; nothing is learned from frames.
//
// An Engine is pure: it is told frames and the time, says what becomes of each frame, and hands out those of its own. Its tables and
// queues are bounded. It sees whole Ethernet frames, outside and inside.
//
// Its files: tables (records, routes and addresses, and what is allowed), engine (what is decided), send (frames of an adapter),
// answer (what adapters are answered in place of others), route (between subnets of a routing domain), provider (the way to other hosts),
// arrive (frames from other hosts), counters, directory (the tables for those who have to look up addresses themselves).
package overlay
