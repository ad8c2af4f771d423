package web

import (
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
)

// portView is what the Port Protocol tab shows.
type portView struct {
	Choice           string // hw, ib, eth, auto
	Holder           string // the key or parameter that keeps the choice
	IB, Eth, Sensing bool   // what the adapter can be, and whether AUTO has two to choose from
}

// can tells whether the adapter can be set to a choice.
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

// allowed are the choices that the adapter can be set to.
func (v *portView) allowed() string {
	var names []string
	for _, choice := range []string{"ib", "eth", "auto", "hw"} {
		if v.can(choice) {
			names = append(names, choice)
		}
	}
	return strings.Join(names, ", ")
}

// Bad tells whether what is chosen is nothing that the adapter can be.
func (v portView) Bad() bool { return !v.can(v.Choice) }

// The keys of the first port's protocol: of mlx4 in the registry, of mlx5 among the parameters of mlxconfig.
const (
	portKey       = "PortType1"
	portParameter = "LINK_TYPE_P1"
)

// portProtocols are the values of portKey by the choices of the tab; portParameter knows those that are not 0 and not 3.
var portProtocols = map[string]uint64{"hw": 0, "ib": 1, "eth": 2, "auto": 3}

// portProtocol shows the Port Protocol tab (WinOF 5.50, 4.1.1.2).
func (s *Server) portProtocol(q *request) error { return s.showPort(q, "") }

func (s *Server) showPort(q *request, problem string) error {
	v, err := s.adapterView(q, "port")
	if err != nil {
		return err
	}
	d, err := s.portOf(q, v.Adapter)
	if err != nil {
		return err
	}
	v.Data, v.Problem = d, problem
	return s.show(q, "port", v)
}

// portOf is what the first port of an adapter can be, and is to be.
func (s *Server) portOf(q *request, a *api.AdapterStatus) (portView, error) {
	stored, holder, err := s.storedProtocol(q, a)
	d := portView{Choice: "hw", Holder: holder, IB: slices.Contains(a.Protocols, "ib"), Eth: slices.Contains(a.Protocols, "eth")}
	d.Sensing = d.IB && d.Eth && a.Class() == catalogue.MLX4
	for choice, n := range portProtocols {
		if stored != nil && *stored == n {
			d.Choice = choice
		}
	}
	return d, err
}

// storedProtocol is the protocol that was chosen for the first port of an adapter, and what keeps it; nil: none was.
func (s *Server) storedProtocol(q *request, a *api.AdapterStatus) (stored *uint64, holder string, err error) {
	if a.Class() == catalogue.MLX5 {
		r, err := s.client.LoadRegistry(q.r.Context())
		if err != nil {
			return nil, portParameter, err
		}
		for _, p := range a.Parameters(r) {
			if p.Name == portParameter {
				stored = p.New
			}
		}
		return stored, portParameter, nil
	}
	list, err := s.client.Settings(q.r.Context(), a.Name)
	for _, x := range list {
		if x.Name != portKey || x.Stored == nil {
			continue
		}
		if n, err := strconv.ParseUint(*x.Stored, 0, 64); err == nil {
			stored = &n
		}
	}
	return stored, portKey, err
}

// portSaid is what is said of a choice that was stored.
var portSaid = map[string]string{
	"hw": "Port 1 is left to the hardware's default", "ib": "Port 1 is set to IB", "eth": "Port 1 is set to ETH", "auto": "Port 1 is set to AUTO",
}

// setPortProtocol stores what the port can be, and refuses the rest.
func (s *Server) setPortProtocol(q *request) error {
	v, err := s.adapterView(q, "port")
	if err != nil {
		return err
	}
	d, err := s.portOf(q, v.Adapter)
	if err != nil {
		return err
	}
	choice := q.r.PostForm.Get("protocol")
	if !d.can(choice) {
		return s.showPort(q, sentence((&api.FieldError{Field: "protocol", Value: strconv.Quote(choice), Allowed: d.allowed()}).Error()))
	}
	if err := s.storeProtocol(q, v.Adapter, choice); err != nil {
		return err
	}
	return s.done(q, portSaid[choice]+". A restart of the adapter takes it up.", adapterURL(v.Adapter.Name, "/port"))
}

func (s *Server) storeProtocol(q *request, a *api.AdapterStatus, choice string) error {
	n := portProtocols[choice]
	if a.Class() == catalogue.MLX4 {
		_, err := s.client.Set(q.r.Context(), a.Name, portKey, strconv.FormatUint(n, 10))
		return err
	}
	set := map[string]*uint64{portParameter: &n}
	if n == 0 {
		set[portParameter] = nil
	}
	return s.client.Configure(q.r.Context(), a, set)
}
