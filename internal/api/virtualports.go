package api

import (
	"context"
	"net/url"
)

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
