// Package fabric is an InfiniBand fabric without hardware: channel adapters, switches and
// routers as virtual nodes, with the links between them.
//
// Of what it consists says a topology.Topology. Here it runs: agents of subnet and performance management, routing by
// tables, faults, and the queues and credits of data, as one pure engine.
package fabric
