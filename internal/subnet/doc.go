// Package subnet is an InfiniBand subnet manager (IBA 14): it discovers the topology, assigns LIDs,
// computes routes and brings links up.
//
// It builds on packages that do not depend on it: topology, the subnet as discovered; partition, who may
// communicate with whom; routing, the forwarding tables; administration, which answers queries about the
// subnet and keeps registrations. It is pure: it does no I/O, starts no goroutine and reads no clock. The
// caller passes in the time and received MADs, and takes out MADs to send and the next deadline.
package subnet
