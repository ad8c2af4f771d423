package overlay

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

const (
	// MostRecords, MostRoutes and MostAddresses are how many lookup records, routes of either sort and provider addresses there are at
	// most.
	MostRecords   = 4096
	MostRoutes    = 1024
	MostAddresses = 16

	// LeastSubnet and MostSubnet are the virtual subnets that there are: NVGRE reserves those below 4096 and the last (RFC 7637, 3.4).
	LeastSubnet = 0x1000
	MostSubnet  = tunnel.MostID - 1
)

// Record says where a customer's address is (New-NetVirtualizationLookupRecord).
type Record struct {
	Subnet   uint32
	Customer netip.Addr
	MAC      eth.MAC
	Provider netip.Addr
}

// CustomerRoute says where packets of a routing domain go (New-NetVirtualizationCustomerRoute). The virtual subnets that it names are in
// the domain.
type CustomerRoute struct {
	Domain string
	Subnet uint32
	Prefix netip.Prefix
	// NextHop is the customer address in the subnet that gets the packets; unspecified: whoever they are for.
	NextHop netip.Addr
	Metric  uint32
}

// ProviderAddress is an address of this host (New-NetVirtualizationProviderAddress), with how frames are sent from it.
type ProviderAddress struct {
	Address netip.Prefix // with the length of its network
	VLAN    uint16
	Kind    tunnel.Kind
}

// ProviderRoute says by which router hosts are reached that are on no network of this one (New-NetVirtualizationProviderRoute).
type ProviderRoute struct {
	Prefix  netip.Prefix
	NextHop netip.Addr
	Metric  uint32
}

// Tables are all that is said of where everybody is.
type Tables struct {
	Records   []Record
	Routes    []CustomerRoute
	Addresses []ProviderAddress
	Providers []ProviderRoute
}

// FieldError says which field of a table is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Value, e.Want)
}

// CheckSubnet returns why a number is that of no virtual subnet; the error is a *FieldError.
func CheckSubnet(id uint32) error {
	if id < LeastSubnet || id > MostSubnet {
		return &FieldError{"vsid", id, fmt.Sprintf("%d to %d", LeastSubnet, MostSubnet)}
	}
	return nil
}

// Check returns why the tables cannot be; the error is a *FieldError.
func (t *Tables) Check() error {
	for _, x := range []struct {
		what    string
		n, most int
	}{{"records", len(t.Records), MostRecords}, {"customer routes", len(t.Routes), MostRoutes},
		{"provider addresses", len(t.Addresses), MostAddresses}, {"provider routes", len(t.Providers), MostRoutes}} {
		if x.n > x.most {
			return &FieldError{"number of " + x.what, x.n, fmt.Sprintf("at most %d", x.most)}
		}
	}
	if err := t.checkRecords(); err != nil {
		return err
	}
	if err := t.checkRoutes(); err != nil {
		return err
	}
	return t.checkProviders()
}

// inSubnet is something of a virtual subnet.
type inSubnet[T comparable] struct {
	subnet uint32
	of     T
}

func (t *Tables) checkRecords() error {
	customers, at := map[inSubnet[netip.Addr]]bool{}, map[inSubnet[eth.MAC]]netip.Addr{}
	for _, r := range t.Records {
		if err := CheckSubnet(r.Subnet); err != nil {
			return err
		}
		k, m := inSubnet[netip.Addr]{r.Subnet, r.Customer}, inSubnet[eth.MAC]{r.Subnet, r.MAC}
		switch {
		case !station(r.Customer):
			return &FieldError{"customer address", r.Customer, "that of one station"}
		case customers[k]:
			return &FieldError{"customer address", r.Customer, fmt.Sprintf("one that no other record of the virtual subnet %d has", r.Subnet)}
		case r.MAC[0]&1 != 0 || r.MAC == eth.MAC{} || r.MAC == Router:
			return &FieldError{"mac", r.MAC, "that of one station, and not the router's"}
		case !station(r.Provider):
			return &FieldError{"provider address", r.Provider, "that of one host"}
		case at[m].IsValid() && at[m] != r.Provider:
			return &FieldError{"provider address", r.Provider, fmt.Sprintf("%s, where other records of the virtual subnet have %s", at[m], r.MAC)}
		}
		customers[k], at[m] = true, r.Provider
	}
	return nil
}

// station reports whether an address may be that of one station.
func station(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() && a.Zone() == "" &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (t *Tables) checkRoutes() error {
	domains, prefixes := map[uint32]string{}, map[inSubnet[netip.Prefix]]bool{}
	for _, r := range t.Routes {
		if err := CheckSubnet(r.Subnet); err != nil {
			return err
		}
		k := inSubnet[netip.Prefix]{r.Subnet, r.Prefix}
		switch {
		case r.Domain == "":
			return &FieldError{"domain", `""`, "a name"}
		case domains[r.Subnet] != "" && domains[r.Subnet] != r.Domain:
			return &FieldError{"domain", r.Domain, fmt.Sprintf("%s, in which the virtual subnet %d is", domains[r.Subnet], r.Subnet)}
		case !r.Prefix.IsValid() || r.Prefix.Masked() != r.Prefix || r.Prefix.Addr().Is4In6():
			return &FieldError{"prefix", r.Prefix, "a network, with no bit set behind its length"}
		case prefixes[k]:
			return &FieldError{"prefix", r.Prefix, fmt.Sprintf("one that no other route of the virtual subnet %d has", r.Subnet)}
		case !r.NextHop.IsValid() || r.NextHop.Is4() != r.Prefix.Addr().Is4() || !r.NextHop.IsUnspecified() && !station(r.NextHop):
			return &FieldError{"next hop", r.NextHop, "an address of the prefix's kind; 0.0.0.0 or ::, whoever packets are for"}
		}
		domains[r.Subnet], prefixes[k] = r.Domain, true
	}
	return nil
}

func (t *Tables) checkProviders() error {
	own := map[netip.Addr]bool{}
	for _, a := range t.Addresses {
		switch {
		case !a.Address.IsValid() || !station(a.Address.Addr()):
			return &FieldError{"provider address", a.Address, "that of one host, with the length of its network"}
		case own[a.Address.Addr()]:
			return &FieldError{"provider address", a.Address.Addr(), "one that is there once"}
		case a.VLAN > 4094:
			return &FieldError{"vlan", a.VLAN, "0 (none), 1 to 4094"}
		case a.Kind != tunnel.VXLAN && a.Kind != tunnel.NVGRE:
			return &FieldError{"encapsulation", a.Kind, "VXLAN, NVGRE"}
		}
		own[a.Address.Addr()] = true
	}
	for _, r := range t.Providers {
		switch {
		case !r.Prefix.IsValid() || r.Prefix.Masked() != r.Prefix || r.Prefix.Addr().Is4In6():
			return &FieldError{"prefix", r.Prefix, "a network, with no bit set behind its length"}
		case !station(r.NextHop) || r.NextHop.Is4() != r.Prefix.Addr().Is4():
			return &FieldError{"next hop", r.NextHop, "the address of a router, of the prefix's kind"}
		}
	}
	return nil
}
