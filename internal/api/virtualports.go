package api

import (
	"context"
	"net/url"
)

// virtualPortSource is a driver with virtual IPoIB ports (WinOF 5.50, 5.2: part_man). A Driver that has it serves it.
type virtualPortSource interface {
	VirtualPorts() []VirtualPort
	AddVirtualPort(VirtualPortRequest) (VirtualPort, error)
	// RemoveVirtualPort removes one port; fields other than its name must match unless they are empty.
	RemoveVirtualPort(VirtualPortRequest) error
	RemoveVirtualPorts() error
}

// VirtualPortRequest identifies a virtual port, or describes a new one.
type VirtualPortRequest struct {
	Connection string `json:"connection" doc:"Of a new port: the IPoIB port that it is made on, an adapter or a virtual function with an IPoIB interface. To remove: the virtual port's own connection."`
	IName      string `json:"iname,omitempty" doc:"Begins with an i; generated if omitted."`
	PKey       string `json:"pkey,omitempty" doc:"4 hexadecimal digits; without it the port's default one."`
}

// VirtualPort is a virtual IPoIB port.
type VirtualPort struct {
	Connection string `json:"connection" doc:"Name of its connection."`
	Port       string `json:"port" doc:"The adapter, or the virtual function, that it is made on."`
	IName      string `json:"iname"`
	PKey       string `json:"pkey" doc:"That it was made with, or the port's default one."`
	State      string `json:"state" doc:"up, or why it is disconnected."`
	ActivePKey string `json:"active_pkey,omitempty" doc:"The P_Key of the port's table that it has."`
}

func (s *Server) virtualPortRoutes(d virtualPortSource) {
	register(s, operation("GET", VirtualPortsURL, "virtual-ports", "The virtual IPoIB ports"),
		func(context.Context, *struct{}) (*one[[]VirtualPort], error) { return body(d.VirtualPorts()), nil })
	register(s, operation("POST", VirtualPortsURL, "add-virtual-port", "Make a virtual IPoIB port on an IPoIB port"),
		func(_ context.Context, in *struct{ Body VirtualPortRequest }) (*one[VirtualPort], error) {
			p, err := d.AddVirtualPort(in.Body)
			return body(p), err
		})
	register(s, operation("DELETE", VirtualPortsURL, "remove-virtual-ports", "Remove all virtual IPoIB ports"),
		func(context.Context, *struct{}) (*struct{}, error) { return nil, d.RemoveVirtualPorts() })
	register(s, operation("DELETE", VirtualPortsURL+"/{connection}", "remove-virtual-port", "Remove a virtual IPoIB port"),
		func(_ context.Context, in *struct {
			Connection string `path:"connection"`
			IName      string `query:"iname" doc:"Refuse if it has another."`
			PKey       string `query:"pkey" doc:"Refuse if it has another."`
		}) (*struct{}, error) {
			return nil, d.RemoveVirtualPort(VirtualPortRequest{in.Connection, in.IName, in.PKey})
		})
}

// VirtualPorts returns the virtual IPoIB ports.
func (c *Client) VirtualPorts(ctx context.Context) (list []VirtualPort, err error) {
	err = c.call(ctx, "GET", VirtualPortsURL, nil, nil, &list)
	return list, err
}

// AddVirtualPort creates a virtual IPoIB port.
func (c *Client) AddVirtualPort(ctx context.Context, q VirtualPortRequest) (p VirtualPort, err error) {
	err = c.call(ctx, "POST", VirtualPortsURL, nil, q, &p)
	return p, err
}

// RemoveVirtualPort removes a virtual IPoIB port.
func (c *Client) RemoveVirtualPort(ctx context.Context, q VirtualPortRequest) error {
	v := url.Values{}
	for name, value := range map[string]string{"iname": q.IName, "pkey": q.PKey} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return c.call(ctx, "DELETE", VirtualPortsURL+"/"+url.PathEscape(q.Connection), v, nil, nil)
}

// RemoveVirtualPorts removes all of them.
func (c *Client) RemoveVirtualPorts(ctx context.Context) error {
	return c.call(ctx, "DELETE", VirtualPortsURL, nil, nil, nil)
}
