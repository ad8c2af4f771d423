// Package device is the adapter: its ports, GID table and object tables, the
// loop that drives the protocol engines around the links, and the choice of the
// path that a connection takes.
//
// A Host holds all adapters of a process and one loop. The loop has one owner at
// a time, by a baton: control commands take it, whoever posts, polls or waits
// takes it when it is free and drives the engines inline, and a background
// thread holds it while nobody else does.
//
// A Client is one program: the embedded one (in this process) or an attached
// one (package ipc serves it). It implements command.Commands, and beside it the
// hooks of the data path:
//
//   - a request is posted in the ring of the QP, then Doorbell(handle) says so;
//     an attached program writes the QP's handle into the doorbell queue, which
//     lies at offset 0 of arena 0, and wakes the loop (an eventfd) where the
//     queue's sleep flag says that it sleeps;
//   - completions are read from the ring of the CQ; Poll drives the loop once;
//   - WaitCQ waits until the event sequence of the CQ's ring differs from the
//     one that the waiter saw before it armed the CQ.
//
// Its rooms, none of which knows this package:
//
//   - handle: the tables by which programs name their objects;
//   - eventqueue: the asynchronous events that a program has not read;
//   - gid: the GID table of a port, and what its GIDs and MAC are made of;
//   - ibport: an InfiniBand port: what the subnet manager has set, and what is asked of its administration;
//   - plug: the links of a port, one for each of its addresses, with what stands between them and the loop;
//   - deferred: the copies in memory that only its owner reaches;
//   - bed: where the loop sleeps.
package device
