// Package device is the devices of a process as the control plane sees them: adapters, which are functions
// behind ports, with their GID tables and object tables; the loop that drives ports and moves packets between
// them and their links; and the choice of the path that a connection takes.
//
// A Host holds all adapters of a process and one loop. The loop has one owner at a time, the holder of the
// loop lock: control commands take it; a program that posts, polls or waits takes it if it is free and drives
// the engines inline; and a background thread holds it while nobody else does.
//
// A Client is one program: the embedded one (in this process) or an attached one (served by package ipc).
// It implements command.Commands and, in addition, the hooks of the data path:
//
//   - a request is posted to the ring of the QP, then Doorbell(handle) announces
//     it; an attached program writes the QP's handle into the doorbell queue, at
//     offset 0 of arena 0, and wakes the loop (an eventfd) if the queue's sleep
//     flag says that it sleeps;
//   - completions are read from the ring of the CQ; Poll drives the loop once;
//   - WaitCQ waits until the event sequence of the CQ's ring differs from the
//     one that the waiter saw before it armed the CQ.
//
// Its files, by what they are about:
//
//   - an adapter and its port: adapter, port, addresses, config, limits, configure, state, capture, and nic, its Ethernet
//     function;
//   - programs and their objects: client, objects, qp, cq, moderation, srq, multicast, destroy, channel, notify;
//   - their CM ids: cmid (create, accept, query), cmbind, cmresolve, cmconnect, cmevents, and ibcm on
//     InfiniBand;
//   - an InfiniBand port among other adapters and programs: ibport, ibroute, ibwait;
//   - the choice of the path: route, path (what decides), join (when it may change), lease, recall;
//   - a turn of the loop: loop, portloop (a port and its links), turn (an adapter's part of it), doorbell, exchange (the local
//     path), complete, gsi; and who drives it: host, wait, sleep, by the policy of package wait;
//   - what tools see: info, status, inspect, counters, rings.
//
// Its subpackages, which are independent of this package:
//
//   - handle: the tables by which programs refer to their objects;
//   - eventqueue: the asynchronous events that a program has not read;
//   - links: the links of a function's addresses, and what connects them to its port and the loop;
//   - lease: connections delegated to the programs at their ends, which then carry out requests themselves;
//   - notify: changes of an adapter's state, for those who subscribe to them.
//
// The functions themselves, with QP1, the GID table, the client of an InfiniBand fabric's administration and deferred
// copies, are in internal/function/rdma.
package device
