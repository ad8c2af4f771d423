package topology

import "fmt"

// FatTreeShape selects the fat tree (folded Clos network of full bisection) that FatTree generates.
type FatTreeShape struct {
	Radix     int // ports of a switch, even
	Levels    int // 2 or 3
	Hosts     int // 0: as many as fit. Leaves and pods without any are omitted
	HostPorts int // 1 or 2, both at the same leaf; 0 means 1
}

// FatTree generates a fat tree. With k half the radix, two levels are up to 2k leaves with k host ports
// each below k spines; three levels are 2k pods of k leaves and k aggregation switches below k*k cores.
// The error is a *ParameterError.
func FatTree(s FatTreeShape, r Rate) (*Topology, error) {
	if s.HostPorts == 0 {
		s.HostPorts = 1
	}
	if err := within("radix", s.Radix, 2, MaxNodePorts); err != nil {
		return nil, err
	}
	if s.Radix%2 != 0 {
		return nil, &ParameterError{"radix", s.Radix, "even numbers"}
	}
	if err := within("levels", s.Levels, 2, 3); err != nil {
		return nil, err
	}
	if err := within("ports of a host", s.HostPorts, 1, 2); err != nil {
		return nil, err
	}
	k := s.Radix / 2
	if k%s.HostPorts != 0 {
		return nil, &ParameterError{"radix", s.Radix, "multiples of 4 where hosts have 2 ports"}
	}
	perLeaf := k / s.HostPorts
	most := s.Radix * perLeaf
	if s.Levels == 3 {
		most *= k
	}
	if s.Hosts == 0 {
		s.Hosts = most
	}
	if s.Hosts < 1 || s.Hosts > most {
		return nil, &ParameterError{"hosts", s.Hosts, fmt.Sprintf("1 to %d with %d levels of radix %d", most, s.Levels, s.Radix)}
	}
	leaves := (s.Hosts + perLeaf - 1) / perLeaf
	switches := leaves + k
	if s.Levels == 3 {
		switches = leaves + (leaves+k-1)/k*k + k*k
	}
	b := newBuilder(r)
	if err := b.check(s.Hosts, s.HostPorts, switches, s.Radix); err != nil {
		return nil, err
	}
	b.adapters(s.Hosts, s.HostPorts)
	leaf := b.add("leaf", leaves, s.Radix)
	if s.Levels == 2 {
		b.spines(leaf, leaves, k)
	} else {
		b.pods(leaf, leaves, k)
	}
	for h := range s.Hosts {
		for q := range s.HostPorts {
			b.join(h, q+1, leaf+h/perLeaf, h%perLeaf*s.HostPorts+q+1)
		}
	}
	return &b.Topology, nil
}

// spines connects each leaf to each of k spines.
func (b *builder) spines(leaf, leaves, k int) {
	spine := b.add("spine", k, 2*k)
	for l := range leaves {
		for s := range k {
			b.join(leaf+l, k+1+s, spine+s, l+1)
		}
	}
}

// pods connects the k leaves of each pod to its k aggregation switches, and those at the same position in
// all pods to the same k cores.
func (b *builder) pods(leaf, leaves, k int) {
	pods := (leaves + k - 1) / k
	agg := b.add("agg", pods*k, 2*k)
	core := b.add("core", k*k, 2*k)
	for l := range leaves {
		for g := range k {
			b.join(leaf+l, k+1+g, agg+l/k*k+g, l%k+1)
		}
	}
	for p := range pods {
		for g := range k {
			for u := range k {
				b.join(agg+p*k+g, k+1+u, core+g*k+u, p+1)
			}
		}
	}
}
