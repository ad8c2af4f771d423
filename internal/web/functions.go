package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// functionsView is the contents of the page of functions.
type functionsView struct {
	Ports  []functionPort
	Chosen string         // the virtual function that the form changes; empty: it makes a new one
	Fields []functionWord // of the form
	// Adapter and Name are what was entered for a new one, and NameWrong and AdapterWrong why that was refused.
	Adapter, Name           string
	AdapterWrong, NameWrong string
	Hosts                   []string // adapters that may have virtual functions
}

// functionPort is a physical function with the virtual ones at its port.
type functionPort struct {
	Adapter *api.AdapterStatus
	Granted string // by SR-IOV's configuration
	Overlay string // what its overlay does; empty: there is none
	IPoIB   []string
	Virtual []functionRow
}

// functionRow is a virtual function.
type functionRow struct {
	api.FunctionStatus
	State, Owner, Limits string
	IPoIB                []string // its interfaces in words
	Dropped              uint64
}

// Link returns the address of the page with the form of this one.
func (r *functionRow) Link() string {
	return functionsURL + "?" + url.Values{"name": {r.Name}}.Encode() + "#set"
}

// functionWord is a setting, as softvpi vf set has it.
type functionWord struct {
	Name, Title, Value, Help string
	Was                      string   // what it is before the change
	Choices                  []string // nil: any text
	Wrong                    string
}

const functionsURL = Prefix + "functions"

// functions shows the physical and virtual functions.
func (s *Server) functions(q *request) error {
	return s.showFunctions(q, q.r.URL.Query().Get("name"), nil, nil)
}

// showFunctions shows the page with what was entered and refused.
func (s *Server) showFunctions(q *request, chosen string, entered url.Values, refused error) error {
	v, err := s.view(q, "Functions", "functions")
	if err != nil {
		return err
	}
	list, err := s.client.Functions(q.r.Context())
	if err != nil {
		return err
	}
	said, err := s.client.Overlay(q.r.Context())
	if err != nil {
		return err
	}
	d := functionsView{Chosen: chosen, Adapter: entered.Get("adapter"), Name: entered.Get("name")}
	var now *api.FunctionStatus
	for i := range v.Adapters {
		a := &v.Adapters[i]
		p := functionPort{Adapter: a, Granted: grantedText(a), Overlay: overlayText(&said, a.Name), IPoIB: ipoibTexts(a.IPoIB)}
		for k := range list {
			if f := &list[k]; f.Adapter == a.Name {
				p.Virtual = append(p.Virtual, rowOf(f))
				if f.Name == chosen {
					now = f
				}
			}
		}
		if a.SRIOV != nil {
			d.Hosts = append(d.Hosts, a.Name)
		}
		d.Ports = append(d.Ports, p)
	}
	if chosen != "" && now == nil {
		return &missingError{"virtual function " + strconv.Quote(chosen)}
	}
	d.Fields = functionWords(now)
	d.enter(entered)
	if refused != nil {
		v.Problem = sentence(refused.Error())
		d.mark(refused)
	}
	v.Data = d
	return s.show(q, "functions", v)
}

// grantedText says what SR-IOV's configuration grants a port; empty: it says nothing of that.
func grantedText(a *api.AdapterStatus) string {
	x := a.SRIOV
	if x == nil {
		return "An InfiniBand port has no virtual functions yet."
	}
	return sentence(fmt.Sprintf("SR-IOV: %s, %d of %d by configuration", x.Support, x.Granted, x.Requested) + strings.TrimRight("; "+x.Cause, "; "))
}

// overlayText says what the overlay of an adapter's port has done, and what it has dropped for which reason; empty: there is none.
func overlayText(o *api.Overlay, adapter string) string {
	i := slices.IndexFunc(o.Switches, func(s api.OverlayStatus) bool { return s.Adapter == adapter })
	if i < 0 {
		return ""
	}
	s := &o.Switches[i]
	c := s.Counters
	text := fmt.Sprintf("Overlay: %d functions in virtual subnets, %d records; sent %s frames (%s bytes) in tunnels, received %s (%s), %s local",
		s.Functions, s.Records, count(c["sent"]), count(c["sent_bytes"]), count(c["arrived"]), count(c["arrived_bytes"]),
		count(c["local"]))
	dropped := []string{}
	for name, n := range c {
		if why, ok := strings.CutPrefix(name, "dropped_"); ok && n > 0 {
			dropped = append(dropped, fmt.Sprintf("%s %s", strings.ReplaceAll(why, "_", " "), count(n)))
		}
	}
	if slices.Sort(dropped); len(dropped) > 0 {
		text += "; dropped: " + strings.Join(dropped, ", ")
	}
	return text + "."
}

func rowOf(f *api.FunctionStatus) functionRow {
	r := functionRow{FunctionStatus: *f, State: "down", IPoIB: ipoibTexts(f.IPoIB)}
	if f.Up {
		r.State = "up"
	}
	r.Dropped = f.Counters["spoofed_mac"] + f.Counters["spoofed_ethertype"] + f.Counters["spoofed_gid"] + f.Counters["wrong_vlan"]
	owner := []string{fmt.Sprintf("%d programs", f.Programs)}
	for _, x := range []struct{ what, of string }{{"group", f.Group}, {"interface", f.TAP}, {"namespace", f.NetNS},
		{"machine at", machineText(f)}} {
		if x.of != "" {
			owner = append(owner, x.what+" "+x.of)
		}
	}
	r.Owner = strings.Join(owner, ", ")
	var limits []string
	if f.Max != 0 {
		limits = append(limits, fmt.Sprintf("at most %g Mb/s", f.Max))
	}
	if f.Min != 0 {
		limits = append(limits, fmt.Sprintf("at least %g Mb/s", f.Min))
	}
	if f.Trust {
		limits = append(limits, "trusted")
	}
	r.Limits = cmp.Or(strings.Join(limits, ", "), "none")
	return r
}

// GIDs returns the GIDs of a function at an InfiniBand port, or the GUIDs that it is to have while it has none.
func (r *functionRow) GIDs() []string {
	if x := r.Fabric; len(x.GIDs) == 0 {
		return x.Asked
	}
	return r.Fabric.GIDs
}

// ipoibTexts says of each IPoIB interface of a function what it is and what it carries.
func ipoibTexts(list []api.IPoIBStatus) (out []string) {
	for i := range list {
		x, key := &list[i], "no partition"
		if x.PKey != 0 {
			key = fmt.Sprintf("P_Key 0x%04x", x.PKey)
		}
		text := fmt.Sprintf("%s, interface %s, %s, sent %s packets, received %s", x.State, or(x.Interface, "none"), key,
			count(x.Counters["sent_packets"]), count(x.Counters["received_packets"]))
		if x.IName != "" {
			text = x.Connection + " (" + x.IName + "): " + text
		}
		out = append(out, text)
	}
	return out
}

// machineText says where a virtual machine has its card, and whether it is there; empty: the host is none.
func machineText(f *api.FunctionStatus) string {
	if f.HostState == "" {
		return ""
	}
	return f.Host + " (" + f.HostState + ")"
}

// functionWords returns the settings of a virtual function, or of a new one.
func functionWords(f *api.FunctionStatus) []functionWord {
	if f == nil {
		f = &api.FunctionStatus{Link: "auto", VLANs: "none"}
	}
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	card := f.Host
	if f.HostState == "" { // it is the network interface
		card = ""
	}
	var guids, keys string
	if f.Fabric != nil {
		guids, keys = strings.Join(f.Fabric.Asked, "+"), f.PKeysGiven
	}
	list := []functionWord{
		{Name: "mac", Title: "MAC", Value: f.MAC, Help: "02:00:00:00:00:01"},
		{Name: "address", Title: "Address", Value: f.Address, Help: "192.0.2.9/24"},
		{Name: "vlan", Title: "VLAN", Value: strconv.Itoa(int(f.VLAN)), Help: "0: none, 1 to 4094"},
		{Name: "vlans", Title: "VLANs of its own tags", Value: cmp.Or(f.VLANs, "none"), Help: "none, all, or 10+20-29"},
		{Name: "vsid", Title: "Virtual subnet", Value: strconv.Itoa(int(f.VSID)), Help: "0: none, 4096 to 16777214"},
		{Name: "link", Title: "Link", Value: f.Link, Choices: []string{"auto", "up", "down"}},
		{Name: "max", Title: "Sends at most", Value: number(f.Max), Help: "Mbit/s, 0: no limit"},
		{Name: "min", Title: "Sends at least", Value: number(f.Min), Help: "Mbit/s, 0: none"},
		{Name: "trust", Title: "Trust", Value: map[bool]string{true: "on", false: "off"}[f.Trust], Choices: []string{"off", "on"}},
		{Name: "group", Title: "Group", Value: cmp.Or(f.Group, "none"), Help: "whose members may attach; none"},
		{Name: "tap", Title: "Network interface", Value: cmp.Or(f.TAP, "none"), Help: "name of a TAP; none"},
		{Name: "host", Title: "Machine's card", Value: cmp.Or(card, "none"), Help: "datagram:PATH or stream:PATH, the driver's socket; none"},
		{Name: "hostpeer", Title: "Machine's socket", Value: cmp.Or(f.HostPeer, "none"), Help: "of datagrams; none: PATH.peer"},
		{Name: "netns", Title: "Network namespace", Value: cmp.Or(f.NetNS, "none"), Help: "of the network interface; none"},
		{Name: "visible", Title: "Visible to", Value: cmp.Or(f.Visible, "all"), Choices: []string{"all", "netns"}},
		{Name: "guid", Title: "GUID", Value: guids, Help: "at an InfiniBand port: 0x0200c90000000001, auto: the subnet manager chooses"},
		{Name: "pkeys", Title: "P_Keys", Value: keys, Help: "at an InfiniBand port: default, all, or 0x8001+0x7fff"},
	}
	for i := range list {
		list[i].Was = list[i].Value
	}
	return list
}

// enter puts what was entered into the fields.
func (d *functionsView) enter(form url.Values) {
	for i := range d.Fields {
		if w := &d.Fields[i]; form.Has(w.Name) {
			w.Value = form.Get(w.Name)
		}
	}
}

// mark puts a refusal beside the field that it is about.
func (d *functionsView) mark(err error) {
	var wrong *api.FieldError
	if !errors.As(err, &wrong) {
		return
	}
	said := "Allowed: " + wrong.Allowed
	switch wrong.Field {
	case "name":
		d.NameWrong = said
	case "adapter":
		d.AdapterWrong = said
	}
	for i := range d.Fields {
		if d.Fields[i].Name == wrong.Field {
			d.Fields[i].Wrong = said
		}
	}
}

// given returns the settings of a form that differ from what was.
func given(form url.Values) []string {
	set := []string{}
	for _, w := range functionWords(nil) {
		if value := strings.TrimSpace(form.Get(w.Name)); form.Has(w.Name) && value != form.Get("was-"+w.Name) {
			set = append(set, w.Name+"="+value)
		}
	}
	return set
}

// changeFunction creates, changes, resets or removes a virtual function.
func (s *Server) changeFunction(q *request) error {
	form, ctx := q.r.PostForm, q.r.Context()
	action, name := form.Get("action"), form.Get("name")
	var err error
	said, back, chosen := "", functionsURL, ""
	switch action {
	case "create":
		_, err = s.client.CreateFunction(ctx, api.FunctionRequest{Adapter: form.Get("adapter"), Name: name, Settings: given(form)})
		said = name + " is there."
	case "set":
		set := given(form)
		if len(set) == 0 {
			return s.done(q, "Nothing was changed.", functionsURL)
		}
		err, chosen = s.client.SetFunction(ctx, api.FunctionRequest{Name: name, Settings: set}), name
		said = name + " is changed."
	case "reset":
		err, said = s.client.ResetFunction(ctx, name), name+" was reset."
	case "remove":
		err, said = s.client.RemoveFunction(ctx, name), name+" is removed."
	default:
		err = &api.FieldError{Field: "action", Value: strconv.Quote(action), Allowed: "create, set, reset, remove"}
	}
	if err == nil {
		return s.done(q, said, back)
	}
	if action != "create" && action != "set" {
		form = nil // there is nothing to correct in the form
	}
	return s.showFunctions(q, chosen, form, err)
}
