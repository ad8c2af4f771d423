package registry

import (
	"cmp"
	"slices"
)

// VLAN is what is kept of a VLAN interface of an adapter or a team (WinOF 5.50, 4.1.6: vlan_config).
type VLAN struct {
	GUID     string // with its braces, as those of adapters
	Name     string
	Owner    string // the GUID of the adapter or team
	Number   uint32 // they are in the order of their numbers
	ID       uint32
	Priority uint32
	Address  string // of its RDMA function, with the length of its network; empty: the one that follows from its MAC and ID
	TAP      string // its host's network interface; empty: it has none
}

// Values of a VLAN interface's key, which is named after its GUID. The manual does not say where they are kept.
const (
	valueVLANName     = "Name"
	valueVLANOwner    = "Owner"
	valueVLANNumber   = "Number"
	valueVLANID       = "VlanId"
	valueVLANPriority = "Priority"
	valueVLANAddress  = "Address"
	valueVLANTAP      = "Tap"
)

// vlans holds the keys of all VLAN interfaces.
var vlans = Path{ControlSet + `\Services\SoftVPI\Vlans`}

// VLANs returns what is kept of VLAN interfaces, in the order in which they were made. Keys that describe none are skipped.
func (r *Registry) VLANs() (list []VLAN) {
	k, _ := r.Key(vlans)
	for _, p := range k.Subkeys {
		whole := true
		text := func(name string) string {
			v, _ := r.Get(p, name)
			s, ok := v.Text()
			whole = whole && ok
			return s
		}
		number := func(name string) uint32 {
			v, _ := r.Get(p, name)
			n, ok := v.Number()
			whole = whole && ok
			return uint32(n)
		}
		v := VLAN{GUID: p.Name(), Name: text(valueVLANName), Owner: text(valueVLANOwner), Number: number(valueVLANNumber),
			ID: number(valueVLANID), Priority: number(valueVLANPriority), Address: text(valueVLANAddress), TAP: text(valueVLANTAP)}
		if whole && v.Name != "" {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b VLAN) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Keep returns the changes that keep a VLAN interface, in place of what was kept of it.
func (v *VLAN) Keep() (all []Change) {
	for _, x := range []Value{
		String(valueVLANName, v.Name), String(valueVLANOwner, v.Owner), DWord(valueVLANNumber, v.Number), DWord(valueVLANID, v.ID),
		DWord(valueVLANPriority, v.Priority), String(valueVLANAddress, v.Address), String(valueVLANTAP, v.TAP),
	} {
		all = append(all, Change{Kind: SetValue, Key: vlans.Child(v.GUID), Value: x})
	}
	return all
}

// Forget returns the change after which nothing is kept of a VLAN interface.
func (v *VLAN) Forget() Change {
	return Change{Kind: DeleteKey, Key: vlans.Child(v.GUID), Lenient: true}
}
