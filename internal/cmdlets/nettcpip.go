package cmdlets

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// Network is the addresses and routes of network interfaces of the system, those that belong to adapters.
type Network interface {
	Addresses(iface string) ([]netip.Prefix, error)
	AddAddress(iface string, p netip.Prefix) error
	RemoveAddress(iface string, p netip.Prefix) error
	Routes(iface string) ([]Route, error)
	AddRoute(iface string, r Route) error
	RemoveRoute(iface string, r Route) error
}

// Route is a route by an interface. The next hop is invalid if destinations are on its network.
type Route struct {
	To     netip.Prefix
	By     netip.Addr
	Metric int
}

func netTCPIP() []cmdlet {
	alias := powershell.Param{Name: "InterfaceAlias", Aliases: []string{"ifAlias"}, Kind: powershell.Strings, Piped: true,
		Help: "The adapters, with wildcards; all without it."}
	index := powershell.Param{Name: "InterfaceIndex", Aliases: []string{"ifIndex"}, Kind: powershell.Numbers, Help: "By the numbers of their interfaces."}
	family := powershell.Param{Name: "AddressFamily", Kind: powershell.String, Allowed: []string{"IPv4", "IPv6"}, Help: "Only this family."}
	addr := func(mandatory bool) powershell.Param {
		return powershell.Param{Name: "IPAddress", Aliases: []string{"LocalAddress"}, Kind: powershell.String, Position: 1, Mandatory: mandatory, Piped: true,
			Help: "The address."}
	}
	to := func(mandatory bool) powershell.Param {
		return powershell.Param{Name: "DestinationPrefix", Kind: powershell.String, Position: 1, Mandatory: mandatory, Piped: true, Help: "Such as 10.0.0.0/8."}
	}
	hop := powershell.Param{Name: "NextHop", Kind: powershell.String, Piped: true, Help: "By which address."}
	metric := powershell.Param{Name: "RouteMetric", Kind: powershell.Number, Max: 65535, Help: "The lower the better."}
	one := func(name, help string, changes bool, do func(*run) error, params ...powershell.Param) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: name, Help: help, Changes: changes, Params: params}, do}
	}
	const note = "Addresses and routes are those of network interfaces that belong to adapters: TAPs of Ethernet functions, and IPoIB. Others have the addresses of their configuration."
	list := []cmdlet{
		one("Get-NetIPAddress", "List the addresses of adapters.", false, (*run).getAddresses, addr(false), alias, index, family),
		one("New-NetIPAddress", "Add an address to the network interface of an adapter.", true, (*run).newAddress, addr(true), alias, index, family,
			powershell.Param{Name: "PrefixLength", Kind: powershell.Number, Max: 128, Help: "Bits of its network; all without it."},
			powershell.Param{Name: "DefaultGateway", Kind: powershell.String, Help: "The next hop of a default route."},
			powershell.Param{Name: "Type", Kind: powershell.String, Allowed: []string{"Unicast"}, Help: "It is unicast."}),
		one("Remove-NetIPAddress", "Remove addresses of the network interfaces of adapters.", true, (*run).removeAddresses, addr(false), alias, index, family),
		one("Get-NetIPInterface", "List the network interfaces of adapters.", false, (*run).getInterfaces, alias, index, family),
		one("Set-NetIPInterface", "Say that DHCP clients are the system's.", true, (*run).setInterface, alias, index, family,
			powershell.Param{Name: "Dhcp", Kind: powershell.String, Allowed: []string{"Enabled", "Disabled"}, Help: "Whether a DHCP client runs."}),
		one("Get-NetRoute", "List the routes by the network interfaces of adapters.", false, (*run).getRoutes, to(false), alias, index, family),
		one("New-NetRoute", "Add a route by the network interface of an adapter.", true, (*run).newRoute, to(true), alias, index, hop, metric),
		one("Remove-NetRoute", "Remove routes by the network interfaces of adapters.", true, (*run).removeRoutes, to(false), alias, index, hop),
	}
	for i := range list {
		list[i].Note = map[bool]string{true: note}[list[i].Name == "New-NetIPAddress"]
	}
	return list
}

// interfaceOf returns the network interface of the system that belongs to an adapter; empty: none.
func interfaceOf(a *api.AdapterStatus) string {
	if a.Ethernet != nil {
		if name, ok := strings.CutPrefix(a.Ethernet.Host, "TAP "); ok {
			return name
		}
	}
	if len(a.IPoIB) > 0 {
		return a.IPoIB[0].Interface
	}
	return ""
}

// byAlias returns the adapters of -InterfaceAlias and -InterfaceIndex.
func (r *run) byAlias() (out []*api.AdapterStatus, err error) {
	all, err := r.adapters(r.Texts("InterfaceAlias"))
	if err != nil || !r.Given("InterfaceIndex") {
		return all, err
	}
	for _, a := range all {
		if slices.Contains(r.Numbers("InterfaceIndex"), ifIndex(a)) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, &powershell.ParameterError{Parameter: "-InterfaceIndex", Value: fmt.Sprint(r.Numbers("InterfaceIndex")), Allowed: "ifIndex of Get-NetAdapter"}
	}
	return out, nil
}

// oneInterface returns the adapter of -InterfaceAlias, which has to be one, and its network interface.
func (r *run) oneInterface() (a *api.AdapterStatus, iface string, err error) {
	if !r.Given("InterfaceAlias") && !r.Given("InterfaceIndex") {
		return nil, "", &powershell.ParameterError{Parameter: "-InterfaceAlias is missing", Allowed: "an adapter"}
	}
	list, err := r.byAlias()
	if err != nil {
		return nil, "", err
	}
	if len(list) != 1 {
		return nil, "", &powershell.ParameterError{Parameter: "-InterfaceAlias", Value: strings.Join(r.Texts("InterfaceAlias"), ", "), Allowed: "one adapter"}
	}
	if iface = interfaceOf(list[0]); iface == "" {
		return nil, "", noInterface(list[0])
	}
	return list[0], iface, nil
}

func noInterface(a *api.AdapterStatus) error {
	return fmt.Errorf("%w: %q has no network interface of the system; its addresses are those of its configuration (softvpi up --adapter)",
		api.ErrUnsupported, a.Name)
}

// ofFamily reports whether an address is of -AddressFamily.
func (r *run) ofFamily(a netip.Addr) bool {
	f := r.Text("AddressFamily")
	return f == "" || (f == "IPv4") == a.Is4()
}

// prefixes returns the addresses of an adapter with the lengths of their networks.
func (r *run) prefixes(a *api.AdapterStatus) ([]netip.Prefix, error) {
	if iface := interfaceOf(a); iface != "" {
		return r.network.Addresses(iface)
	}
	var out []netip.Prefix
	for _, x := range a.Addresses {
		out = append(out, netip.PrefixFrom(x, x.BitLen()))
	}
	return out, nil
}

// chosenAddresses calls do for each address that the parameters mean.
func (r *run) chosenAddresses(do func(*api.AdapterStatus, netip.Prefix) error) error {
	var want netip.Addr
	if text := r.Text("IPAddress"); text != "" && text != "*" {
		var err error
		if want, err = netip.ParseAddr(text); err != nil {
			return &powershell.ParameterError{Parameter: "-IPAddress", Value: text, Allowed: "an IPv4 or IPv6 address"}
		}
	}
	list, err := r.byAlias()
	if err != nil {
		return err
	}
	for _, a := range list {
		prefixes, err := r.prefixes(a)
		if err != nil {
			return err
		}
		for _, p := range prefixes {
			if (!want.IsValid() || p.Addr() == want) && r.ofFamily(p.Addr()) {
				if err := do(a, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func addressObject(a *api.AdapterStatus, p netip.Prefix) *powershell.Object {
	return powershell.NewObject("MSFT_NetIPAddress", "IPAddress", "PrefixLength", "InterfaceAlias", "InterfaceIndex", "AddressFamily").
		With("IPAddress", p.Addr().String()).With("InterfaceIndex", ifIndex(a)).With("InterfaceAlias", a.Name).
		With("AddressFamily", map[bool]string{true: "IPv4", false: "IPv6"}[p.Addr().Is4()]).With("Type", "Unicast").With("PrefixLength", int64(p.Bits()))
}

func (r *run) getAddresses() error {
	return r.chosenAddresses(func(a *api.AdapterStatus, p netip.Prefix) error { r.Emit(addressObject(a, p)); return nil })
}

func (r *run) newAddress() error {
	x, err := netip.ParseAddr(r.Text("IPAddress"))
	if err != nil {
		return &powershell.ParameterError{Parameter: "-IPAddress", Value: r.Text("IPAddress"), Allowed: "an IPv4 or IPv6 address"}
	}
	bits := x.BitLen()
	if r.Given("PrefixLength") {
		bits = int(r.Number("PrefixLength"))
	}
	p := netip.PrefixFrom(x, bits)
	if !p.IsValid() {
		return &powershell.ParameterError{Parameter: "-PrefixLength", Value: fmt.Sprint(bits), Allowed: fmt.Sprintf("0 to %d", x.BitLen())}
	}
	var gateway netip.Addr
	if r.Given("DefaultGateway") {
		if gateway, err = netip.ParseAddr(r.Text("DefaultGateway")); err != nil || gateway.Is4() != x.Is4() {
			return &powershell.ParameterError{Parameter: "-DefaultGateway", Value: r.Text("DefaultGateway"), Allowed: "an address of the same family"}
		}
	}
	a, iface, err := r.oneInterface()
	if err != nil || !r.Should(r.Cmdlet.Name+" "+p.String(), a.Name) {
		return err
	}
	if err := r.network.AddAddress(iface, p); err != nil {
		return err
	}
	if gateway.IsValid() {
		if err := r.network.AddRoute(iface, Route{To: netip.PrefixFrom(unspecified(x), 0), By: gateway}); err != nil {
			return err
		}
	}
	r.Emit(addressObject(a, p))
	return nil
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func (r *run) removeAddresses() error {
	found := false
	err := r.chosenAddresses(func(a *api.AdapterStatus, p netip.Prefix) error {
		found = true
		iface := interfaceOf(a)
		if iface == "" {
			return noInterface(a)
		}
		if !r.Should(r.Cmdlet.Name+" "+p.String(), a.Name) {
			return nil
		}
		return r.network.RemoveAddress(iface, p)
	})
	if err == nil && !found {
		return fmt.Errorf("no address matches")
	}
	return err
}

func (r *run) getInterfaces() error {
	list, err := r.byAlias()
	if err != nil {
		return err
	}
	for _, a := range list {
		iface := interfaceOf(a)
		r.Emit(powershell.NewObject("MSFT_NetIPInterface", "ifIndex", "InterfaceAlias", "NlMtu", "Dhcp", "ConnectionState", "SystemInterface").
			With("ifIndex", ifIndex(a)).With("InterfaceIndex", ifIndex(a)).With("InterfaceAlias", a.Name).With("NlMtu", int64(a.LinkMTU)).
			With("Dhcp", "Disabled").With("ConnectionState", map[bool]string{true: "Connected", false: "Disconnected"}[a.Enabled && a.Up]).
			With("SystemInterface", iface))
	}
	return nil
}

func (r *run) setInterface() error {
	list, err := r.byAlias()
	if err != nil {
		return err
	}
	if !r.Given("Dhcp") {
		return &powershell.ParameterError{Parameter: "what to set is missing", Allowed: "-Dhcp"}
	}
	if r.Text("Dhcp") == "Enabled" {
		return &notYet{"a DHCP client", "the system's runs on a network interface as on others"}
	}
	for _, a := range list {
		if r.Should(r.Cmdlet.Name, a.Name) {
			r.Verbose("no DHCP client of the driver runs on %q", a.Name)
		}
	}
	return nil
}

// chosenRoutes calls do for each route that the parameters mean.
func (r *run) chosenRoutes(do func(*api.AdapterStatus, Route) error) error {
	list, err := r.byAlias()
	if err != nil {
		return err
	}
	for _, a := range list {
		iface := interfaceOf(a)
		if iface == "" {
			continue
		}
		routes, err := r.network.Routes(iface)
		if err != nil {
			return err
		}
		for _, x := range routes {
			if to := r.Text("DestinationPrefix"); to != "" && to != x.To.String() || !r.ofFamily(x.To.Addr()) {
				continue
			}
			if hop := r.Text("NextHop"); hop != "" && hop != hopText(x) {
				continue
			}
			if err := do(a, x); err != nil {
				return err
			}
		}
	}
	return nil
}

func hopText(x Route) string {
	if x.By.IsValid() {
		return x.By.String()
	}
	return unspecified(x.To.Addr()).String()
}

func routeObject(a *api.AdapterStatus, x Route) *powershell.Object {
	return powershell.NewObject("MSFT_NetRoute", "ifIndex", "DestinationPrefix", "NextHop", "RouteMetric", "InterfaceAlias").With("ifIndex", ifIndex(a)).
		With("DestinationPrefix", x.To.String()).With("NextHop", hopText(x)).With("RouteMetric", int64(x.Metric)).With("InterfaceAlias", a.Name)
}

func (r *run) getRoutes() error {
	return r.chosenRoutes(func(a *api.AdapterStatus, x Route) error { r.Emit(routeObject(a, x)); return nil })
}

func (r *run) newRoute() error {
	to, err := netip.ParsePrefix(r.Text("DestinationPrefix"))
	if err != nil {
		return &powershell.ParameterError{Parameter: "-DestinationPrefix", Value: r.Text("DestinationPrefix"), Allowed: "a prefix such as 10.0.0.0/8"}
	}
	x := Route{To: to.Masked(), Metric: int(r.Number("RouteMetric"))}
	if hop := r.Text("NextHop"); hop != "" {
		if x.By, err = netip.ParseAddr(hop); err != nil || x.By.Is4() != to.Addr().Is4() {
			return &powershell.ParameterError{Parameter: "-NextHop", Value: hop, Allowed: "an address of the same family"}
		}
		if x.By.IsUnspecified() {
			x.By = netip.Addr{}
		}
	}
	a, iface, err := r.oneInterface()
	if err != nil || !r.Should(r.Cmdlet.Name+" "+x.To.String(), a.Name) {
		return err
	}
	if err := r.network.AddRoute(iface, x); err != nil {
		return err
	}
	r.Emit(routeObject(a, x))
	return nil
}

func (r *run) removeRoutes() error {
	found := false
	err := r.chosenRoutes(func(a *api.AdapterStatus, x Route) error {
		if found = true; !r.Should(r.Cmdlet.Name+" "+x.To.String(), a.Name) {
			return nil
		}
		return r.network.RemoveRoute(interfaceOf(a), x)
	})
	if err == nil && !found {
		return fmt.Errorf("no route matches")
	}
	return err
}
