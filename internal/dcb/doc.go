// Package dcb is the LLDP agent of a port (IEEE 802.1AB-2016) with DCBX: what the port and its peer agree about priorities,
// as IEEE 802.1Q-2018 (clause 38 and annex D) or as its predecessor CEE (DCB capability exchange protocol 1.01) says.
//
// It is pure: it is told the time and what arrived, and hands back frames and its next deadline. What was agreed are the
// qos.Operative settings, with the origin of each part; what they do is for others to say.
//
// Files: agent is when data units are sent, and neighbour what is known of the others; dcbx chooses the protocol and the peer, ieee
// and cee are the two protocols.
package dcb
