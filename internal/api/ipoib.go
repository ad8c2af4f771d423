package api

import (
	"context"
	"net/netip"
	"net/url"
)

// Endpoints are the end points that an IPoIB interface knows.
type Endpoints struct {
	Connection string              `json:"connection"`
	Local      []LocalEndpoint     `json:"local"`
	Multicast  []MulticastEndpoint `json:"multicast"`
	Remote     []RemoteEndpoint    `json:"remote"`
}

// LocalEndpoint is an IP address that is reached through an interface.
type LocalEndpoint struct {
	Address    netip.Addr `json:"address"`
	Configured bool       `json:"configured" doc:"The interface has it itself; else the system sends from it for others, and it ages."`
	Age        int        `json:"age" doc:"Runs of the endpoint monitor since it was used (LocalEndpointMaxAge)."`
}

// MulticastEndpoint is a multicast group of an interface.
type MulticastEndpoint struct {
	MGID     netip.Addr `json:"mgid"`
	MLID     uint16     `json:"mlid" doc:"0: it is not joined."`
	SendOnly bool       `json:"send_only" doc:"Joined only to send to it."`
	State    string     `json:"state" enum:"joining,waiting,joined"`
	QKey     uint32     `json:"qkey"`
	MTU      int        `json:"mtu" doc:"Payload bytes of a packet; 0: not known yet."`
	SL       uint8      `json:"sl"`
}

// RemoteEndpoint is a neighbour of an interface.
type RemoteEndpoint struct {
	Address netip.Addr `json:"address"`
	Link    string     `json:"link" doc:"Link-layer address, 20 bytes; empty: not known yet."`
	QPN     uint32     `json:"qpn"`
	GID     netip.Addr `json:"gid"`
	LID     uint16     `json:"lid" doc:"0: no path is known yet."`
	State   string     `json:"state" enum:"incomplete,querying path,reachable,stale,probing"`
	Unused  float64    `json:"unused_seconds" doc:"Since something was sent to it last."`
}

// Endpoints returns the end points of an IPoIB interface, or of all if connection is empty.
func (c *Client) Endpoints(ctx context.Context, connection string) (list []Endpoints, err error) {
	v := url.Values{}
	if connection != "" {
		v.Set("connection", connection)
	}
	err = c.call(ctx, "GET", EndpointsURL, v, nil, &list)
	return list, err
}
