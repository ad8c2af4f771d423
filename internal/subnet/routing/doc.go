// Package routing computes the forwarding tables of a subnet: pure engines on a graph of its switches, the
// spanning tree of its multicast groups, and checks of which ports the tables reach and whether they can
// deadlock. It knows no MADs: the subnet manager creates the graph from what it has discovered, and writes
// what an engine found.
package routing
