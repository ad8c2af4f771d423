// Package notify reports changes of the state of adapters to those who subscribe to them.
package notify

import "net/netip"

// Flags say what changed about an adapter: the flags of the manual's IND2ProviderControl status callback,
// and GIDChange.
type Flags uint32

// The flags.
const (
	Up Flags = 1 << iota
	Down
	RDMADisabled
	GIDChange   // the GID table has changed
	RDMAEnabled // the adapter begins to work
	OtherMode   // RoCE packets of another mode than the adapter's have arrived for it
	SmallMTU    // the MTU of its wire has become too small for RoCE
	SameAddress // somebody else on the wire has one of its addresses, which is Addr
	Unknown     // its interface is gone, so that the state of its link is not known any more
)

// Change is reported to subscribers when the state of an adapter changes.
type Change struct {
	Adapter uint32
	Addr    netip.Addr
	Flags   Flags
	MAC     [6]byte // of SameAddress: the other's
}
