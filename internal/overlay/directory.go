package overlay

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/wire/eth"
)

// Directory says who has which address in the virtual subnets of tables: what functions look up that have no network stack of their own,
// as RDMA functions do. The zero value knows nobody. It does not change.
type Directory struct {
	records  map[inSubnet[netip.Addr]]eth.MAC
	own      map[inSubnet[eth.MAC]][]netip.Addr
	gateways map[inSubnet[netip.Addr]]bool
	domains  map[uint32]string
	routes   []CustomerRoute
}

// NewDirectory returns the directory of tables, which were checked.
func NewDirectory(t *Tables) *Directory {
	d := &Directory{records: map[inSubnet[netip.Addr]]eth.MAC{}, own: map[inSubnet[eth.MAC]][]netip.Addr{},
		gateways: map[inSubnet[netip.Addr]]bool{}, domains: map[uint32]string{}, routes: slices.Clone(t.Routes)}
	for i := range t.Records {
		r := &t.Records[i]
		d.records[inSubnet[netip.Addr]{r.Subnet, r.Customer}] = r.MAC
		k := inSubnet[eth.MAC]{r.Subnet, r.MAC}
		d.own[k] = append(d.own[k], r.Customer)
	}
	for i := range d.routes {
		r := &d.routes[i]
		d.domains[r.Subnet] = r.Domain
		if a, ok := gatewayOf(r); ok {
			d.gateways[inSubnet[netip.Addr]{r.Subnet, a}] = true
		}
	}
	return d
}

// Addresses returns the customer addresses of an adapter of a virtual subnet, by its MAC, in the order of the records.
func (d *Directory) Addresses(subnet uint32, mac eth.MAC) []netip.Addr {
	return d.own[inSubnet[eth.MAC]{subnet, mac}]
}

// Find returns the MAC to which an adapter of a virtual subnet sends what is for an address: that of the subnet's record, or the router's,
// if the routing domain has a route; known is false if there is neither.
func (d *Directory) Find(subnet uint32, a netip.Addr) (mac eth.MAC, known bool) {
	k := inSubnet[netip.Addr]{subnet, a}
	if mac, known = d.records[k]; known {
		return mac, true
	}
	domain, routed := d.domains[subnet]
	if r := bestRoute(d.routes, domain, a); routed && r != nil && r.Subnet != subnet || d.gateways[k] {
		return Router, true
	}
	return mac, false
}
