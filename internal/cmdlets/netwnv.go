package cmdlets

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/powershell"
)

// netWNV is what is said of records of network virtualization.
const netWNV = "network virtualization (NVGRE) is not in yet: the record is kept, and no packet is encapsulated by it"

// virtualization are the kinds of records of network virtualization: the noun, and the properties by which a record is one, in order.
var virtualization = []struct {
	noun, what string
	params     []powershell.Param
}{
	{"LookupRecord", "where a customer address is", []powershell.Param{
		address("CustomerAddress", "Address of the virtual machine."), {Name: "VirtualSubnetID", Aliases: []string{"VSID"}, Kind: powershell.Number,
			Min: 4096, Max: 16777214, Help: "The virtual subnet."},
		{Name: "MACAddress", Kind: powershell.String, Help: "MAC of the virtual machine, 12 hexadecimal digits."},
		address("ProviderAddress", "Address of the host."),
		{Name: "Rule", Kind: powershell.String, Allowed: []string{"TranslationMethodEncap", "TranslationMethodNat", "TranslationMethodNone"}, Help: "How packets are sent."},
		{Name: "VMName", Kind: powershell.String, Help: "Name of the virtual machine."}}},
	{"CustomerRoute", "where a virtual subnet's packets go", []powershell.Param{
		{Name: "RoutingDomainID", Kind: powershell.String, Help: "GUID of the routing domain."},
		{Name: "VirtualSubnetID", Aliases: []string{"VSID"}, Kind: powershell.Number, Min: 4096, Max: 16777214, Help: "The virtual subnet."},
		{Name: "DestinationPrefix", Kind: powershell.String, Help: "Where they are sent."}, address("NextHop", "By which address; 0.0.0.0: directly."),
		{Name: "Metric", Kind: powershell.Number, Max: 65535, Help: "The lower the better."}}},
	{"ProviderAddress", "an address of the host", []powershell.Param{
		address("ProviderAddress", "The address."), {Name: "InterfaceIndex", Aliases: []string{"ifIndex"}, Kind: powershell.Number, Max: 1 << 31, Help: "The adapter's interface."},
		{Name: "PrefixLength", Kind: powershell.Number, Max: 128, Help: "Bits of its network."},
		{Name: "VlanID", Kind: powershell.Number, Max: 4094, Help: "Its VLAN."}}},
	{"ProviderRoute", "where the host's packets go", []powershell.Param{
		{Name: "DestinationPrefix", Kind: powershell.String, Help: "Where they are sent."}, address("NextHop", "By which address."),
		{Name: "InterfaceIndex", Aliases: []string{"ifIndex"}, Kind: powershell.Number, Max: 1 << 31, Help: "The adapter's interface."},
		{Name: "Metric", Kind: powershell.Number, Max: 65535, Help: "The lower the better."}}},
}

func address(name, help string) powershell.Param {
	return powershell.Param{Name: name, Kind: powershell.String, Help: help}
}

func netVirtualization() (out []cmdlet) {
	for _, v := range virtualization {
		kind := "NetVirtualization" + v.noun
		params := func(mandatory int) []powershell.Param {
			list := append([]powershell.Param(nil), v.params...)
			for i := range list {
				list[i].Piped = mandatory == 0
				list[i].Mandatory = i < mandatory
			}
			return list
		}
		identity := 2 // the properties that make a record another one
		out = append(out,
			cmdlet{powershell.Cmdlet{Name: "New-" + kind, Changes: true, Params: params(identity), Help: "Keep a record of " + v.what + ".",
				Note: "Network virtualization (NVGRE) is not in yet: records have no effect."}, func(r *run) error { return r.newRecord(kind, identity) }},
			cmdlet{powershell.Cmdlet{Name: "Get-" + kind, Params: params(0), Help: "List the records of " + v.what + "."},
				func(r *run) error { return r.getRecords(kind) }},
			cmdlet{powershell.Cmdlet{Name: "Remove-" + kind, Changes: true, Params: params(0), Help: "Remove records of " + v.what + ", those that match or all."},
				func(r *run) error { return r.removeRecords(kind) }})
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

func (r *run) newRecord(kind string, identity int) error {
	f, err := r.fields()
	if err != nil {
		return err
	}
	if err := r.ownInterface(); err != nil {
		return err
	}
	var id []string
	for _, p := range r.Cmdlet.Params[:identity] {
		id = append(id, f[p.Name])
	}
	name := strings.Join(id, " ")
	have, err := r.records(kind)
	if err != nil {
		return err
	}
	if _, twice := find(have, name); twice {
		return fmt.Errorf("there is a record of %s", name)
	}
	if !r.Should(r.Cmdlet.Name, name) {
		return nil
	}
	r.Warn("%s", netWNV)
	if err := r.keep(kind, record{name, f}); err != nil {
		return err
	}
	r.Emit(r.recordObject(kind, f))
	return nil
}

// ownInterface refuses the number of an interface that is no adapter's.
func (r *run) ownInterface() error {
	if !r.Given("InterfaceIndex") {
		return nil
	}
	all, err := r.adapters(nil)
	if err != nil {
		return err
	}
	var allowed []string
	for _, a := range all {
		if ifIndex(a) == r.Number("InterfaceIndex") {
			return nil
		}
		allowed = append(allowed, fmt.Sprintf("%d (%s)", ifIndex(a), a.Name))
	}
	return &powershell.ParameterError{Parameter: "-InterfaceIndex", Value: fmt.Sprint(r.Number("InterfaceIndex")), Allowed: strings.Join(allowed, ", ")}
}

func (r *run) recordObject(kind string, f map[string]string) *powershell.Object {
	o := powershell.NewObject("MSFT_" + kind + "SettingData")
	o.List = true
	for _, p := range r.Cmdlet.Params {
		if n, err := strconv.ParseInt(f[p.Name], 10, 64); err == nil && p.Kind == powershell.Number {
			o.With(p.Name, n)
		} else {
			o.With(p.Name, f[p.Name])
		}
	}
	return o
}

// chosenRecords returns the records whose properties are those of the parameters.
func (r *run) chosenRecords(kind string) (out []record, err error) {
	want, err := r.fields()
	if err != nil {
		return nil, err
	}
	all, err := r.records(kind)
	for _, x := range all {
		matches := true
		for name, text := range want {
			matches = matches && strings.EqualFold(x.fields[name], text)
		}
		if matches {
			out = append(out, x)
		}
	}
	return out, err
}

func (r *run) getRecords(kind string) error {
	list, err := r.chosenRecords(kind)
	for _, x := range list {
		r.Emit(r.recordObject(kind, x.fields))
	}
	return err
}

func (r *run) removeRecords(kind string) error {
	list, err := r.chosenRecords(kind)
	if err != nil {
		return err
	}
	for _, x := range list {
		if r.Should(r.Cmdlet.Name, x.id) {
			if err := r.forget(kind, x.id); err != nil {
				return err
			}
		}
	}
	return nil
}
