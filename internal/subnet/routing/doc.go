// Package routing finds the forwarding tables of a subnet: engines over a graph of its switches, which are pure, the tree of its
// multicast groups, and checks of what tables reach and whether their paths can wait for each other. It knows no MADs: the subnet
// manager makes the graph of what it has discovered, and writes what an engine found.
package routing
