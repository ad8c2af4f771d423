// Package rdma is an RDMA function of a port: the transport with its memory, the connection manager and QP1 between them.
// It is what the queue pairs, completion queues and connections of programs are made of; the objects themselves belong
// to whoever implements Programs.
//
// Its subpackages are
//
//   - gid: the GID table, and how GIDs and MACs are derived;
//   - gsi: QP1, with the messages of the connection manager and those to the subnet administration;
//   - ibport: an InfiniBand port: what the subnet manager has set, requests to its administration, and routes;
//   - remotecopy: the copies in memory that only its owner can access.
//
// A Function is pure: it is driven by its port (port.Function) and, when a program posts, by its driver.
package rdma
