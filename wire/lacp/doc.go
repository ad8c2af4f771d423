// Package lacp reads and writes the data units of link aggregation: those of LACP, and markers (IEEE 802.1AX-2014, clauses 6.4.2 and
// 6.5.3). Both are slow protocols (IEEE 802.3, annex 57A): they go no further than the other end of a link.
package lacp
