package api

import (
	"context"
	"fmt"
	"io"
	"net/url"
)

// VLANStatus is a VLAN interface of an adapter, of a virtual function, or of a team that was made by command (WinOF 5.50, 4.1.6).
type VLANStatus struct {
	Name      string            `json:"name"`
	GUID      string            `json:"guid" doc:"With braces, as those of adapters."`
	Owner     string            `json:"owner" doc:"The adapter, team or virtual function; empty if the driver's configuration has it no more."`
	OwnerGUID string            `json:"owner_guid"`
	Adapter   string            `json:"adapter,omitempty" doc:"At whose port it is: of a team, its carrier's."`
	Device    string            `json:"device,omitempty" doc:"What programs call its RDMA function."`
	Function  string            `json:"function,omitempty" doc:"The virtual function whose it is, whose programs alone see it."`
	ID        int               `json:"id"`
	Priority  int               `json:"priority" doc:"Of frames of the host's that have none."`
	MAC       string            `json:"mac,omitempty"`
	Address   string            `json:"address,omitempty" doc:"Of its RDMA function."`
	TAP       string            `json:"tap,omitempty" doc:"Its network interface."`
	Up        bool              `json:"up"`
	QPs       int               `json:"qps"`
	GIDs      []GIDStatus       `json:"gids,omitempty"`
	Counters  map[string]uint64 `json:"counters"`
}

// VLANRequest makes a VLAN interface, or changes the name, ID and priority of one.
type VLANRequest struct {
	Owner    string `json:"owner,omitempty" doc:"Of a new one: the adapter, team or virtual function, by GUID or name."`
	Name     string `json:"name" doc:"Of 1 to 31 printable characters, which no other there has."`
	ID       int    `json:"id" doc:"1 to 4094."`
	Priority int    `json:"priority,omitempty" doc:"0 to 7."`
	Address  string `json:"address,omitempty" doc:"Of a new one: of its RDMA function, as 192.0.2.9/24; the link-local one that follows from its MAC and ID."`
	TAP      string `json:"tap,omitempty" doc:"Of a new one: its network interface; none. Without it, if the adapter has one, that with the ID behind it."`
}

func vlanURL(owner, name string) string {
	return VLANsURL + "/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

// VLANs returns the VLAN interfaces.
func (c *Client) VLANs(ctx context.Context) (list []VLANStatus, err error) {
	err = c.call(ctx, "GET", VLANsURL, nil, nil, &list)
	return list, err
}

// CreateVLAN makes a VLAN interface.
func (c *Client) CreateVLAN(ctx context.Context, q VLANRequest) (v VLANStatus, err error) {
	err = c.call(ctx, "POST", VLANsURL, nil, q, &v)
	return v, err
}

// ModifyVLAN gives a VLAN interface another name, ID and priority.
func (c *Client) ModifyVLAN(ctx context.Context, owner, name string, q VLANRequest) (v VLANStatus, err error) {
	err = c.call(ctx, "PUT", vlanURL(owner, name), nil, q, &v)
	return v, err
}

// RemoveVLAN removes a VLAN interface, and returns it as it was.
func (c *Client) RemoveVLAN(ctx context.Context, owner, name string) (v VLANStatus, err error) {
	err = c.call(ctx, "DELETE", vlanURL(owner, name), nil, nil, &v)
	return v, err
}

// writeText prints a VLAN interface as a line.
func (v *VLANStatus) writeText(w io.Writer) {
	state := map[bool]string{true: "up", false: "down"}[v.Up]
	of := ""
	if v.Function != "" {
		of = " of " + clean(v.Function)
	}
	fmt.Fprintf(w, "  VLAN interface %s%s: VLAN %d, priority %d, %s, %s", clean(v.Name), of, v.ID, v.Priority, or(v.Address, "no address"), state)
	if v.TAP != "" {
		fmt.Fprintf(w, ", interface %s", clean(v.TAP))
	}
	fmt.Fprintf(w, ", queue pairs %d\n", v.QPs)
}
