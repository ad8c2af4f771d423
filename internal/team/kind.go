package team

import "strings"

// Type is how a team uses its members. Its numbers are those of TeamType in what vlan_config prints, where "SFT2" is 2 (WinOF 5.50, 4.1.6.6
// and 4.1.6.9); those of the others follow the order in which its help has them.
type Type uint8

// The types.
const (
	AFT Type = iota + 1
	SFT
	SLB
	RLB
	ALB
	LACP // 3AD
	SLA
)

var typeNames = [...]string{AFT: "AFT", SFT: "SFT", SLB: "SLB", RLB: "RLB", ALB: "ALB", LACP: "3AD", SLA: "SLA"}

// Types are the names of all types, as vlan_config's help has them.
const Types = "AFT | SFT | SLB | RLB | ALB | 3AD | SLA"

// ParseType reads the name of a type, in upper or lower case. SFT2 is SFT, as in the manual's example.
func ParseType(name string) (Type, bool) {
	name = strings.ToUpper(name)
	if name == "SFT2" {
		return SFT, true
	}
	for t := AFT; t <= SLA; t++ {
		if typeNames[t] == name {
			return t, true
		}
	}
	return 0, false
}

// String returns the name of a type.
func (t Type) String() string {
	if t < AFT || t > SLA {
		return "none"
	}
	return typeNames[t]
}

// aggregates says that the switch takes the members for one link: any of them may carry a frame of any address.
func (t Type) aggregates() bool { return t == LACP || t == SLA }

// Balances says that members that are not active send from addresses of their own.
func (t Type) Balances() bool { return t == SLB || t == RLB || t == ALB }

// tells says that peers are told different addresses.
func (t Type) tells() bool { return t == RLB || t == ALB }

// Hash is what of a frame chooses its member where frames are spread. Frames that do not have it are spread by the layer below.
type Hash uint8

// The layers. Each has those below in it.
const (
	L4 Hash = iota // UDP and TCP ports
	L3             // IP addresses, and RoCE v1's GIDs
	L2             // MACs, VLAN and Ethernet type
)

var hashNames = [...]string{L4: "L4", L3: "L3", L2: "L2"}

// ParseHash reads the name of a layer, in upper or lower case.
func ParseHash(name string) (Hash, bool) {
	name = strings.ToUpper(name)
	for h, n := range hashNames {
		if n == name {
			return Hash(h), true
		}
	}
	return 0, false
}

// String returns the name of a layer.
func (h Hash) String() string {
	if int(h) >= len(hashNames) {
		return "none"
	}
	return hashNames[h]
}
