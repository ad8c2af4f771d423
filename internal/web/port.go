package web

import (
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
)

// portProtocol shows the Port Protocol tab (WinOF 5.50, 4.1.1.2).
func (s *Server) portProtocol(q *request) error {
	v, err := s.adapterView(q, "port")
	if err != nil {
		return err
	}
	return s.show(q, "port", v)
}

// setPortProtocol takes what the port can be, and refuses the rest.
func (s *Server) setPortProtocol(q *request) error {
	v, err := s.adapterView(q, "port")
	if err != nil {
		return err
	}
	switch choice := q.r.PostForm.Get("protocol"); choice {
	case "eth":
		return s.done(q, "Port 1 is an Ethernet port.", adapterURL(v.Adapter.Name, "/port"))
	case "ib":
		v.Problem = "InfiniBand ports are not built yet; allowed: ETH."
	case "auto":
		v.Problem = "This adapter cannot sense what it is connected to; allowed: ETH."
	default:
		v.Problem = sentence((&api.FieldError{Field: "protocol", Value: strconv.Quote(choice), Allowed: "eth"}).Error())
	}
	return s.show(q, "port", v)
}
