// Package agent is what stands between the programs on a machine and the management datagrams of one of its
// ports: the job that ib_mad and ib_umad have in the Linux kernel (Documentation/infiniband/user_mad.rst).
//
// A program opens a port and registers agents. An agent sends MADs of its management class; a response finds its way
// back by the upper half of the transaction ID, which is the agent's; a request that comes in goes to the agent that has
// registered its class and method. What is not answered in time is sent again and at last handed back with a status.
// Transfers of several packets (RMPP, IBA 13.6) are cut and put together for the agents that want it.
//
// It is driven: it is told the time and what came in, and hands out what is to be sent, and by a
// function what a program gets. It starts nothing and reads no clock.
package agent
