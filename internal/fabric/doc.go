// Package fabric is an InfiniBand fabric without hardware: channel adapters, switches and routers as
// virtual nodes, and the links between them.
//
// A topology.Topology describes its structure. This package runs it as one pure engine: agents of subnet
// and performance management, routing by tables, faults, and the queues and credits of data.
package fabric
