package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
)

// portView is the contents of the Port Protocol tab.
type portView struct {
	Port             int                  // of the device
	Others           []*api.AdapterStatus // ports of the same device
	Choice           string               // hw, ib, eth, auto
	Holder           string               // the key or parameter that stores the choice
	IB, Eth, Sensing bool                 // what the adapter supports, and whether AUTO has two protocols to choose from
}

// can reports whether the adapter can be set to a choice.
func (v *portView) can(choice string) bool {
	switch choice {
	case "hw":
		return true
	case "ib":
		return v.IB
	case "eth":
		return v.Eth
	case "auto":
		return v.Sensing
	}
	return false
}

// allowed returns the choices that the adapter can be set to.
func (v *portView) allowed() string {
	var names []string
	for _, choice := range []string{"ib", "eth", "auto", "hw"} {
		if v.can(choice) {
			names = append(names, choice)
		}
	}
	return strings.Join(names, ", ")
}

// Bad reports whether the stored choice is not supported by the adapter.
func (v portView) Bad() bool { return !v.can(v.Choice) }

// The keys of a port's protocol, without the port's number: for mlx4 in the registry, for mlx5 among the
// parameters of mlxconfig.
const (
	portKey       = "PortType"
	portParameter = "LINK_TYPE_P"
)

// holder returns the key or parameter, at its device, that stores what a port is to be.
func holder(a *api.AdapterStatus) string {
	if a.Class() == catalogue.MLX5 {
		return portParameter + strconv.Itoa(a.Port)
	}
	return portKey + strconv.Itoa(a.Port)
}

// deviceOf returns the adapter that has the keys of a port's device.
func deviceOf(v *view, a *api.AdapterStatus) *api.AdapterStatus {
	for i := range v.Adapters {
		if v.Adapters[i].Name == a.Device {
			return &v.Adapters[i]
		}
	}
	return a
}

// portProtocols maps the choices of the tab to values of portKey; portParameter has those other than 0 and
// 3.
var portProtocols = map[string]uint64{"hw": 0, "ib": 1, "eth": 2, "auto": 3}

// portProtocol shows the Port Protocol tab (WinOF 5.50, 4.1.1.2).
func (s *Server) portProtocol(q *request) error { return s.showPort(q, "") }

func (s *Server) showPort(q *request, problem string) error {
	v, err := s.adapterView(q, "port")
	if err != nil {
		return err
	}
	d, err := s.portOf(q, v)
	if err != nil {
		return err
	}
	v.Data, v.Problem = d, problem
	return s.show(q, "port", v)
}

// portOf returns what the port of an adapter supports, and is configured to be.
func (s *Server) portOf(q *request, v *view) (portView, error) {
	a := v.Adapter
	stored, err := s.storedProtocol(q, deviceOf(v, a), holder(a))
	d := portView{Port: a.Port, Choice: "hw", Holder: holder(a), IB: slices.Contains(a.Protocols, "ib"),
		Eth: slices.Contains(a.Protocols, "eth")}
	d.Sensing = d.IB && d.Eth && a.Class() == catalogue.MLX4
	for i := range v.Adapters {
		if o := &v.Adapters[i]; o.Device == a.Device && o.Name != a.Name {
			d.Others = append(d.Others, o)
		}
	}
	for choice, n := range portProtocols {
		if stored != nil && *stored == n {
			d.Choice = choice
		}
	}
	return d, err
}

// storedProtocol returns the protocol stored in a key of a device; nil: none was chosen.
func (s *Server) storedProtocol(q *request, device *api.AdapterStatus, holder string) (stored *uint64, err error) {
	if device.Class() == catalogue.MLX5 {
		r, err := s.client.LoadRegistry(q.r.Context())
		if err != nil {
			return nil, err
		}
		for _, p := range device.Parameters(r) {
			if p.Name == holder {
				stored = p.New
			}
		}
		return stored, nil
	}
	list, err := s.client.Settings(q.r.Context(), device.Name)
	for _, x := range list {
		if x.Name != holder || x.Stored == nil {
			continue
		}
		if n, err := strconv.ParseUint(*x.Stored, 0, 64); err == nil {
			stored = &n
		}
	}
	return stored, err
}

// portSaid is the message about a choice that was stored.
var portSaid = map[string]string{
	"hw": "is left to the hardware's default", "ib": "is set to IB", "eth": "is set to ETH", "auto": "is set to AUTO",
}

// setPortProtocol stores a choice that the port supports, and refuses others.
func (s *Server) setPortProtocol(q *request) error {
	v, err := s.adapterView(q, "port")
	if err != nil {
		return err
	}
	d, err := s.portOf(q, v)
	if err != nil {
		return err
	}
	choice := q.r.PostForm.Get("protocol")
	if !d.can(choice) {
		return s.showPort(q, sentence((&api.FieldError{Field: "protocol", Value: strconv.Quote(choice), Allowed: d.allowed()}).Error()))
	}
	if err := s.storeProtocol(q, deviceOf(v, v.Adapter), d.Holder, choice); err != nil {
		return err
	}
	return s.done(q, fmt.Sprintf("Port %d %s", d.Port, portSaid[choice])+". A restart of the adapter takes it up.",
		adapterURL(v.Adapter.Name, "/port"))
}

func (s *Server) storeProtocol(q *request, device *api.AdapterStatus, holder, choice string) error {
	n := portProtocols[choice]
	if device.Class() == catalogue.MLX4 {
		_, err := s.client.Set(q.r.Context(), device.Name, holder, strconv.FormatUint(n, 10))
		return err
	}
	set := map[string]*uint64{holder: &n}
	if n == 0 {
		set[holder] = nil
	}
	return s.client.Configure(q.r.Context(), device, set)
}
