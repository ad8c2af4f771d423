// Package fabric is an InfiniBand fabric without hardware: channel adapters, switches and
// routers as virtual nodes, with the links between them.
//
// A Topology says what there is. It is read from the text that ibnetdiscover prints and
// ibsim reads, written back as such, or generated.
package fabric
