// Package team makes several links one (WinOF 5.50, 4.1.6 and 4.2.8): a team has members, which are links of whole Ethernet frames, and
// says which of them a frame leaves by, which frames that arrive are for it, and what others have to be told when a member fails.
//
// The manuals name seven types and describe one of them, fault tolerance. The others are what the trade means by their names:
//
//	AFT  adapter fault tolerance: one member is active, the others stand by
//	SFT  switch fault tolerance: the same with two members, which are at different switches
//	SLB  static load balancing: all send, by a hash, the active one receives; the switch knows nothing of it
//	RLB  receive load balancing: as SLB, and answers of ARP and neighbour discovery spread the peers over the members
//	ALB  adaptive load balancing: as RLB, and flows go to the member that has sent least
//	3AD  link aggregation by LACP (IEEE 802.1AX; internal/lacp)
//	SLA  static link aggregation: all that are up send and receive, and the switch has the same links as a bundle
//
// With SLB, RLB and ALB a member that is not active has an address of its own, so that a switch never sees one address at two ports:
// frames leave by it from that address, peers that were told of it send there, and for the stations it is exchanged for theirs.
//
// A Team is pure: it is told the time, frames and the members' links, and hands out frames, what has changed, and its deadline. Its
// members do not change; who attaches or detaches one makes another.
//
// internal/team/carrier chooses the member that is active, for teams of other members too.
//
// Files: kind has the types, config what a team is made of; team is its members' lives, spread and hash which flow goes to which of
// them, move when it moves there, hold who carries while LACP has nobody that does, send and receive what happens to a frame, notice what
// frames say of addresses, peer who was told which member's address, announce what everybody is told, status what people are shown.
//
// The link that is made of it is internal/link/team.
package team
