package overlay

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Router is the MAC of the router between the virtual subnets of a domain: on every host the same, as the router is on each.
var Router = eth.MAC{0x02, 0x56, 0x50, 0x49, 0x47, 0x57}

// Port is an adapter of the switch by its number.
type Port uint16

// Config is what an engine knows of its wire.
type Config struct {
	// MAC is that of the provider addresses.
	MAC eth.MAC
	// MTU is the size of the largest IP packet that the wire takes.
	MTU int
	// UDPPort is VXLAN's; 0: 4789.
	UDPPort uint16
	// Random is as in neighbour.Config.
	Random func(n int64) int64
}

// Engine is the overlay of one virtual switch. Only one goroutine at a time may call its methods.
type Engine struct {
	cfg        Config
	tables     Tables
	tenants    map[Port]tenant
	here       map[inSubnet[eth.MAC]]Port
	members    map[uint32][]Port
	records    map[inSubnet[netip.Addr]]*Record
	stations   map[inSubnet[eth.MAC]]netip.Addr // the hosts of stations
	hosts      map[uint32][]netip.Addr          // those of a subnet
	domains    map[uint32]string
	gateways   map[inSubnet[netip.Addr]]bool
	known      map[string]map[netip.Addr]bool // hosts of a domain, or of a subnet that is in none
	own        map[netip.Addr]*ProviderAddress
	neighbours *neighbour.Engine
	held       []held
	out        [][]byte
	scratch    []byte
	reply      []byte
	outer      []byte
	datagram   []byte // a checksum is of
	id         uint16
	counters   Counters
}

// tenant is an adapter in a virtual subnet.
type tenant struct {
	subnet uint32
	mac    eth.MAC
	addrs  []netip.Addr // for which the engine answers other hosts
}

// New returns an engine without adapters and tables.
func New(cfg Config) *Engine {
	if cfg.UDPPort == 0 {
		cfg.UDPPort = tunnel.Port
	}
	e := &Engine{cfg: cfg, tenants: map[Port]tenant{}, here: map[inSubnet[eth.MAC]]Port{}, members: map[uint32][]Port{},
		neighbours: neighbour.New(neighbour.Config{Entries: 1024, Random: cfg.Random}), scratch: make([]byte, 0, looked)}
	_ = e.SetTables(Tables{}) // nothing is in order
	return e
}

// SetMTU changes the size of the largest IP packet that the wire takes.
func (e *Engine) SetMTU(n int) { e.cfg.MTU = n }

// SetTables replaces all tables. The error is a *FieldError; nothing has changed then.
func (e *Engine) SetTables(t Tables) error {
	if err := t.Check(); err != nil {
		return err
	}
	t = Tables{slices.Clone(t.Records), slices.Clone(t.Routes), slices.Clone(t.Addresses), slices.Clone(t.Providers)}
	for _, a := range e.tables.Addresses {
		if !slices.ContainsFunc(t.Addresses, func(o ProviderAddress) bool { return o.key() == a.key() }) {
			e.neighbours.Silence(a.key())
		}
	}
	e.tables = t
	e.own = map[netip.Addr]*ProviderAddress{}
	for i := range t.Addresses {
		a := &t.Addresses[i]
		e.own[a.Address.Addr()] = a
		if _, answers := e.neighbours.Answers(a.key()); !answers {
			_ = e.neighbours.Answer(a.key(), e.cfg.MAC) // it is a station's, and there are few
		}
	}
	e.index()
	e.follow()
	return nil
}

func (a *ProviderAddress) key() neighbour.Key {
	return neighbour.Key{VLAN: a.VLAN, Addr: a.Address.Addr()}
}

// index makes what is looked up for every frame.
func (e *Engine) index() {
	e.records, e.stations = map[inSubnet[netip.Addr]]*Record{}, map[inSubnet[eth.MAC]]netip.Addr{}
	e.hosts, e.domains, e.known = map[uint32][]netip.Addr{}, map[uint32]string{}, map[string]map[netip.Addr]bool{}
	e.gateways = map[inSubnet[netip.Addr]]bool{}
	for i := range e.tables.Routes {
		r := &e.tables.Routes[i]
		e.domains[r.Subnet] = r.Domain
		if a, ok := gatewayOf(r); ok {
			e.gateways[inSubnet[netip.Addr]{r.Subnet, a}] = true
		}
	}
	seen := map[inSubnet[netip.Addr]]bool{}
	for i := range e.tables.Records {
		r := &e.tables.Records[i]
		e.records[inSubnet[netip.Addr]{r.Subnet, r.Customer}] = r
		e.stations[inSubnet[eth.MAC]{r.Subnet, r.MAC}] = r.Provider
		k := inSubnet[netip.Addr]{r.Subnet, r.Provider}
		if seen[k] {
			continue
		}
		seen[k] = true
		e.hosts[r.Subnet] = append(e.hosts[r.Subnet], r.Provider)
		d := e.domain(r.Subnet)
		if e.known[d] == nil {
			e.known[d] = map[netip.Addr]bool{}
		}
		e.known[d][r.Provider] = true
	}
}

// domain returns the routing domain of a virtual subnet; one that no route names has its own.
func (e *Engine) domain(subnet uint32) string {
	if d, ok := e.domains[subnet]; ok {
		return d
	}
	return string([]byte{0, byte(subnet >> 16), byte(subnet >> 8), byte(subnet)}) // which no name begins with
}

// SetTenant puts an adapter into a virtual subnet, or into another one. The error is a *FieldError: another adapter there has the MAC.
func (e *Engine) SetTenant(p Port, subnet uint32, mac eth.MAC) error {
	if err := CheckSubnet(subnet); err != nil {
		return err
	}
	k := inSubnet[eth.MAC]{subnet, mac}
	if o, taken := e.here[k]; taken && o != p {
		return &FieldError{"mac", mac, "one that no other adapter in the virtual subnet has"}
	}
	e.RemoveTenant(p)
	e.tenants[p], e.here[k] = tenant{subnet: subnet, mac: mac}, p
	e.members[subnet] = append(e.members[subnet], p)
	return nil
}

// RemoveTenant takes an adapter out of its virtual subnet, if it is in one.
func (e *Engine) RemoveTenant(p Port) {
	t, ok := e.tenants[p]
	if !ok {
		return
	}
	delete(e.tenants, p)
	delete(e.here, inSubnet[eth.MAC]{t.subnet, t.mac})
	e.members[t.subnet] = slices.DeleteFunc(e.members[t.subnet], func(o Port) bool { return o == p })
	if len(e.members[t.subnet]) == 0 {
		delete(e.members, t.subnet)
	}
}

// AnswerFor says for which addresses of an adapter in a virtual subnet others are answered who ask through a tunnel: those of a function
// without a network stack, which sees no questions.
func (e *Engine) AnswerFor(p Port, addrs []netip.Addr) {
	if t, ok := e.tenants[p]; ok {
		t.addrs = slices.Clone(addrs)
		e.tenants[p] = t
	}
}

// Has reports whether an adapter is in a virtual subnet.
func (e *Engine) Has(p Port) bool {
	_, ok := e.tenants[p]
	return ok
}

// SubnetOf returns the virtual subnet of an adapter; 0: it is in none.
func (e *Engine) SubnetOf(p Port) uint32 { return e.tenants[p].subnet }

// Refuse counts a frame that Send has let pass, and that goes nowhere for a reason which the engine does not know.
func (e *Engine) Refuse(why Reason) { e.counters.Dropped[why]++ }

// Inside reports whether a MAC is that of another adapter here in the virtual subnet of one: frames to it do not leave.
func (e *Engine) Inside(p Port, mac eth.MAC) bool {
	t, ok := e.tenants[p]
	if !ok {
		return false
	}
	o, ok := e.here[inSubnet[eth.MAC]{t.subnet, mac}]
	return ok && o != p
}

// Members returns the adapters in a virtual subnet; they are the engine's.
func (e *Engine) Members(subnet uint32) []Port { return e.members[subnet] }

// Overhead returns by how much the headers outside can make an IP packet larger: that is what has to be taken off the MTU of adapters.
func (e *Engine) Overhead() int { return e.tables.Overhead() }

// Overhead is that of an engine with the tables.
func (t *Tables) Overhead() (most int) {
	for _, a := range t.Addresses {
		o := tunnel.Outer{Src: a.Address.Addr()}
		most = max(most, o.HeadLen(a.Kind))
	}
	return most
}
