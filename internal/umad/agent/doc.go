// Package agent mediates between the programs on a machine and the management datagrams of one of its
// ports, like ib_mad and ib_umad in the Linux kernel (Documentation/infiniband/user_mad.rst).
//
// A program opens a port and registers agents. An agent sends MADs of its management class. A response is
// matched by the upper half of its transaction ID, which identifies the agent; an incoming request goes to
// the agent that has registered its class and method. A request without a timely answer is retransmitted
// and finally returned with a status. Transfers of several packets (RMPP, IBA 13.6) are segmented and
// reassembled for the agents that want it.
//
// The caller drives it: it passes in the time and what was received, and takes out what to send; what a
// program is to read is passed to a function. The package starts no goroutines and reads no clock.
package agent
