package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// virtualPortSource is a driver with virtual IPoIB ports (WinOF 5.50, 5.2: part_man). A Driver that has it serves it.
type virtualPortSource interface {
	VirtualPorts() []api.VirtualPort
	AddVirtualPort(api.VirtualPortRequest) (api.VirtualPort, error)
	// RemoveVirtualPort removes one port; fields other than its name must match unless they are empty.
	RemoveVirtualPort(api.VirtualPortRequest) error
	RemoveVirtualPorts() error
}

func (s *Server) virtualPortRoutes(d virtualPortSource) {
	register(s, operation("GET", api.VirtualPortsURL, "virtual-ports", "The virtual IPoIB ports"),
		func(context.Context, *struct{}) (*one[[]api.VirtualPort], error) { return body(d.VirtualPorts()), nil })
	register(s, operation("POST", api.VirtualPortsURL, "add-virtual-port", "Make a virtual IPoIB port on an IPoIB port"),
		func(_ context.Context, in *struct{ Body api.VirtualPortRequest }) (*one[api.VirtualPort], error) {
			p, err := d.AddVirtualPort(in.Body)
			return body(p), err
		})
	register(s, operation("DELETE", api.VirtualPortsURL, "remove-virtual-ports", "Remove all virtual IPoIB ports"),
		func(context.Context, *struct{}) (*struct{}, error) { return nil, d.RemoveVirtualPorts() })
	register(s, operation("DELETE", api.VirtualPortsURL+"/{connection}", "remove-virtual-port", "Remove a virtual IPoIB port"),
		func(_ context.Context, in *struct {
			Connection string `path:"connection"`
			IName      string `query:"iname" doc:"Refuse if it has another."`
			PKey       string `query:"pkey" doc:"Refuse if it has another."`
		}) (*struct{}, error) {
			return nil, d.RemoveVirtualPort(api.VirtualPortRequest{Connection: in.Connection, IName: in.IName, PKey: in.PKey})
		})
}
