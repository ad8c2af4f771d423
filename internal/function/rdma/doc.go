// Package rdma is an RDMA function of a port: the transport with its memory, the connection manager and QP1 between them.
// It is what the queue pairs, completion queues and connections of programs are made of; the objects themselves belong
// to whoever implements Programs.
//
// A Function is pure: it is driven by its port (port.Function) and, when a program posts, by its driver.
package rdma
