package cmdlets

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// virtual is a kind of records of network virtualization.
type virtual struct {
	noun, kind, what string // the cmdlets', the driver's
	identity         int    // how many of the first properties make a record another one
	must             int    // how many of them it must be given
	params           []powershell.Param
}

// virtualization are the kinds, with their properties in order.
var virtualization = []virtual{
	{"LookupRecord", "record", "where a customer address is", 2, 4, []powershell.Param{
		address("CustomerAddress", "Address of the virtual machine."), {Name: "VirtualSubnetID", Aliases: []string{"VSID"}, Kind: powershell.Number,
			Min: 4096, Max: 16777214, Help: "The virtual subnet."},
		{Name: "MACAddress", Kind: powershell.String, Help: "MAC of the virtual machine, 12 hexadecimal digits."},
		address("ProviderAddress", "Address of the host."),
		{Name: "Rule", Kind: powershell.String, Allowed: []string{"TranslationMethodEncap"}, Help: "How packets are sent: in a tunnel."},
		{Name: "VMName", Kind: powershell.String, Help: "Name of the virtual machine."}}},
	{"CustomerRoute", "route", "where a routing domain's packets go", 3, 3, []powershell.Param{
		{Name: "RoutingDomainID", Kind: powershell.String, Help: "GUID of the routing domain."},
		{Name: "VirtualSubnetID", Aliases: []string{"VSID"}, Kind: powershell.Number, Min: 4096, Max: 16777214, Help: "The virtual subnet."},
		{Name: "DestinationPrefix", Kind: powershell.String, Help: "Where they are sent."}, address("NextHop", "By which address; 0.0.0.0: directly."),
		{Name: "Metric", Kind: powershell.Number, Max: 65535, Help: "The lower the better."}}},
	{"ProviderAddress", "address", "an address of the host", 1, 2, []powershell.Param{
		address("ProviderAddress", "The address."), {Name: "InterfaceIndex", Aliases: []string{"ifIndex"}, Kind: powershell.Number, Max: 1 << 31, Help: "The adapter's interface."},
		{Name: "PrefixLength", Kind: powershell.Number, Max: 128, Help: "Bits of its network."},
		{Name: "VlanID", Kind: powershell.Number, Max: 4094, Help: "Its VLAN."}}},
	{"ProviderRoute", "provider-route", "where the host's packets go", 2, 3, []powershell.Param{
		{Name: "DestinationPrefix", Kind: powershell.String, Help: "Where they are sent."}, address("NextHop", "By which address."),
		{Name: "InterfaceIndex", Aliases: []string{"ifIndex"}, Kind: powershell.Number, Max: 1 << 31, Help: "The adapter's interface."},
		{Name: "Metric", Kind: powershell.Number, Max: 65535, Help: "The lower the better."}}},
}

func address(name, help string) powershell.Param {
	return powershell.Param{Name: name, Kind: powershell.String, Help: help}
}

func netVirtualization() (out []cmdlet) {
	for i := range virtualization {
		v := &virtualization[i]
		name := "NetVirtualization" + v.noun
		params := func(must int) []powershell.Param {
			list := append([]powershell.Param(nil), v.params...)
			for i := range list {
				list[i].Piped = must == 0
				list[i].Mandatory = i < must
			}
			return list
		}
		out = append(out,
			cmdlet{powershell.Cmdlet{Name: "New-" + name, Changes: true, Params: params(v.must), Help: "Say " + v.what + ", for network virtualization."},
				func(r *run) error { return r.newVirtual(v) }},
			cmdlet{powershell.Cmdlet{Name: "Get-" + name, Params: params(0), Help: "List the records of " + v.what + "."},
				func(r *run) error { return r.getVirtual(v) }},
			cmdlet{powershell.Cmdlet{Name: "Remove-" + name, Changes: true, Params: params(0), Help: "Remove records of " + v.what + ", those that match or all."},
				func(r *run) error { return r.removeVirtual(v) }})
	}
	return out
}

// fields returns the parameters that are given as text, checked.
func (r *run) fields() (map[string]string, error) {
	out := map[string]string{}
	for _, p := range r.Cmdlet.Params {
		if !r.Given(p.Name) {
			continue
		}
		text := r.Text(p.Name)
		if p.Kind == powershell.Number {
			text = strconv.FormatInt(r.Number(p.Name), 10)
		}
		if err := checkField(p.Name, text); err != nil {
			return nil, err
		}
		out[p.Name] = text
	}
	return out, nil
}

func checkField(name, text string) error {
	wrong := func(allowed string) error {
		return &powershell.ParameterError{Parameter: "-" + name, Value: text, Allowed: allowed}
	}
	switch name {
	case "CustomerAddress", "ProviderAddress", "NextHop":
		if _, err := netip.ParseAddr(text); err != nil {
			return wrong("an IPv4 or IPv6 address")
		}
	case "DestinationPrefix":
		if _, err := netip.ParsePrefix(text); err != nil {
			return wrong("a prefix such as 172.16.0.0/16")
		}
	case "MACAddress":
		if digits := strings.NewReplacer("-", "", ":", "").Replace(text); len(digits) != 12 || strings.Trim(strings.ToLower(digits), "0123456789abcdef") != "" {
			return wrong("12 hexadecimal digits")
		}
	case "RoutingDomainID":
		if len(text) != 38 || text[0] != '{' || text[37] != '}' {
			return wrong("a GUID in braces")
		}
	}
	return nil
}

// newVirtual adds a record.
func (r *run) newVirtual(v *virtual) error {
	f, err := r.fields()
	if err != nil {
		return err
	}
	settings, err := r.virtualSettings(v, f)
	if err != nil {
		return err
	}
	var id []string
	same := map[string]string{}
	for _, p := range v.params[:v.identity] {
		id, same[p.Name] = append(id, f[p.Name]), f[p.Name]
	}
	name := strings.Join(id, " ")
	have, err := r.chosenVirtual(v, same)
	if err != nil {
		return err
	}
	if len(have) > 0 {
		return fmt.Errorf("there is a record of %s", name)
	}
	if !r.Should(r.Cmdlet.Name, name) {
		return nil
	}
	e, err := r.driver.AddOverlayEntry(r.Context, api.OverlayRequest{Kind: v.kind, Settings: settings})
	if err != nil {
		return err
	}
	properties, err := r.properties(&e)
	if err == nil {
		r.Emit(v.object(properties))
	}
	return err
}

// virtualSettings returns the driver's settings for the properties of a record. Provider addresses of these commands send NVGRE, as the
// manual's do (WinOF-2 1.21, 3.3.2.4).
func (r *run) virtualSettings(v *virtual, f map[string]string) (out []string, err error) {
	for _, x := range []struct{ param, setting string }{{"CustomerAddress", "customer"}, {"VirtualSubnetID", "vsid"}, {"VMName", "machine"},
		{"RoutingDomainID", "domain"}, {"DestinationPrefix", "prefix"}, {"NextHop", "via"}, {"Metric", "metric"}, {"VlanID", "vlan"}} {
		if value, ok := f[x.param]; ok {
			out = append(out, x.setting+"="+value)
		}
	}
	if mac, ok := f["MACAddress"]; ok {
		if mac, err = colonMAC("MACAddress", mac); err != nil {
			return nil, err
		}
		out = append(out, "mac="+mac)
	}
	if _, ok := f["InterfaceIndex"]; ok {
		name, err := r.ownInterface()
		if err != nil {
			return nil, err
		}
		out = append(out, "adapter="+name)
	}
	own, ok := f["ProviderAddress"]
	switch {
	case ok && v.kind == "address":
		a := netip.MustParseAddr(own) // it was checked
		bits, given := f["PrefixLength"]
		if !given {
			bits = strconv.Itoa(a.BitLen())
		}
		out = append(out, "address="+own+"/"+bits, "encapsulation=nvgre")
	case ok:
		out = append(out, "provider="+own)
	}
	return out, nil
}

// ownInterface returns the adapter that has the number of an interface.
func (r *run) ownInterface() (string, error) {
	all, err := r.adapters(nil)
	if err != nil {
		return "", err
	}
	var allowed []string
	for _, a := range all {
		if ifIndex(a) == r.Number("InterfaceIndex") {
			return a.Name, nil
		}
		allowed = append(allowed, fmt.Sprintf("%d (%s)", ifIndex(a), a.Name))
	}
	return "", &powershell.ParameterError{Parameter: "-InterfaceIndex", Value: fmt.Sprint(r.Number("InterfaceIndex")), Allowed: strings.Join(allowed, ", ")}
}

// properties returns those of a record, as its parameters have them.
func (r *run) properties(e *api.OverlayEntry) (map[string]string, error) {
	p := map[string]string{"CustomerAddress": e.Customer, "VirtualSubnetID": fmt.Sprint(e.VSID), "MACAddress": bareMAC(e.MAC),
		"ProviderAddress": e.Provider, "Rule": "TranslationMethodEncap", "VMName": e.Machine, "RoutingDomainID": e.Domain,
		"DestinationPrefix": e.Prefix, "NextHop": e.Via, "Metric": fmt.Sprint(e.Metric), "VlanID": fmt.Sprint(e.VLAN)}
	if a, err := netip.ParsePrefix(e.Address); err == nil {
		p["ProviderAddress"], p["PrefixLength"] = a.Addr().String(), fmt.Sprint(a.Bits())
	}
	if e.Adapter == "" {
		return p, nil
	}
	all, err := r.adapters(nil)
	for _, a := range all {
		if a.Name == e.Adapter {
			p["InterfaceIndex"] = fmt.Sprint(ifIndex(a))
		}
	}
	return p, err
}

func (v *virtual) object(properties map[string]string) *powershell.Object {
	o := powershell.NewObject("MSFT_NetVirtualization" + v.noun + "SettingData")
	o.List = true
	for _, p := range v.params {
		if n, err := strconv.ParseInt(properties[p.Name], 10, 64); err == nil && p.Kind == powershell.Number {
			o.With(p.Name, n)
		} else {
			o.With(p.Name, properties[p.Name])
		}
	}
	return o
}

// found is a record with its properties.
type found struct {
	api.OverlayEntry
	properties map[string]string
}

// chosenVirtual returns the records that have the properties.
func (r *run) chosenVirtual(v *virtual, want map[string]string) (out []found, err error) {
	all, err := r.driver.Overlay(r.Context)
	if err != nil {
		return nil, err
	}
	for _, e := range all.Entries {
		if e.Kind != v.kind {
			continue
		}
		p, err := r.properties(&e)
		if err != nil {
			return nil, err
		}
		matches := true
		for name, text := range want {
			if name == "MACAddress" {
				text = strings.NewReplacer("-", "", ":", "").Replace(text)
			}
			matches = matches && strings.EqualFold(p[name], text)
		}
		if matches {
			out = append(out, found{e, p})
		}
	}
	return out, nil
}

func (r *run) getVirtual(v *virtual) error {
	want, err := r.fields()
	if err != nil {
		return err
	}
	list, err := r.chosenVirtual(v, want)
	for _, x := range list {
		r.Emit(v.object(x.properties))
	}
	return err
}

func (r *run) removeVirtual(v *virtual) error {
	want, err := r.fields()
	if err != nil {
		return err
	}
	list, err := r.chosenVirtual(v, want)
	if err != nil {
		return err
	}
	for _, x := range list {
		words := x.Words()
		if !r.Should(r.Cmdlet.Name, strings.Join(words, " ")) {
			continue
		}
		if _, err := r.driver.RemoveOverlayEntries(r.Context, api.OverlayRequest{Kind: v.kind, Settings: words}); err != nil {
			return err
		}
	}
	return nil
}
