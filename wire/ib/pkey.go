package ib

// PKey is a partition key (IBA 10.9): 15 bits of partition number and, as the top bit, whether the port is
// a full (1) or limited (0) member.
type PKey uint16

const (
	// PKeyDefault is the default partition with full membership.
	PKeyDefault PKey = 0xffff
	pkeyBase    PKey = 0x7fff
)

// Full reports whether the port is a full member.
func (k PKey) Full() bool { return k&^pkeyBase != 0 }

// Base is the partition number, without the membership bit.
func (k PKey) Base() PKey { return k & pkeyBase }

// Valid reports whether k names a partition: base 0 is the invalid P_Key (IBA 10.9.1.1).
func (k PKey) Valid() bool { return k&pkeyBase != 0 }

// PKeyMatch reports whether a queue pair with P_Key b may accept a packet with P_Key a: both are valid, of
// the same partition, and not both limited members (IBA 10.9.3).
func PKeyMatch(a, b PKey) bool {
	return (a^b)&pkeyBase == 0 && a&pkeyBase != 0 && (a|b)&^pkeyBase != 0
}
