// Package lldp reads and writes LLDP data units (IEEE 802.1AB-2016): the mandatory and the basic TLVs, those of DCBX in IEEE
// 802.1Q-2018 (annex D.2, which was 802.1Qaz) and in its predecessor CEE (DCB capability exchange protocol 1.01). TLVs of others
// are kept as they are.
//
// A data unit from the network is checked as 802.1AB, 9.2.7.7 says: what is wrong with the three TLVs that every unit begins with,
// or with its structure, makes it invalid as a whole (Error); any other TLV that is wrong is left out and counted.
package lldp
