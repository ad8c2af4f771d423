package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// VLANSource is implemented by a driver with VLAN interfaces, and is then served. Owners are named by their GUIDs, with braces or not, or
// by their names.
type VLANSource interface {
	VLANs() []api.VLANStatus
	CreateVLAN(api.VLANRequest) (api.VLANStatus, error)
	ModifyVLAN(owner, name string, q api.VLANRequest) (api.VLANStatus, error)
	// RemoveVLAN returns the interface as it was.
	RemoveVLAN(owner, name string) (api.VLANStatus, error)
}

// VLANPath identifies a VLAN interface in a path.
type VLANPath struct {
	Owner string `path:"owner" doc:"GUID or name of the adapter, team or virtual function."`
	Name  string `path:"name" doc:"Name of the VLAN interface."`
}

func (s *Server) vlanRoutes(d VLANSource) {
	register(s, operation("GET", api.VLANsURL, "vlans", "The VLAN interfaces of adapters, teams and virtual functions"),
		func(context.Context, *struct{}) (*one[[]api.VLANStatus], error) { return body(d.VLANs()), nil })
	register(s, operation("POST", api.VLANsURL, "create-vlan", "Make a VLAN interface"),
		func(_ context.Context, in *struct{ Body api.VLANRequest }) (*one[api.VLANStatus], error) {
			v, err := d.CreateVLAN(in.Body)
			return body(v), err
		})
	register(s, operation("PUT", api.VLANsURL+"/{owner}/{name}", "modify-vlan", "Give a VLAN interface another name, ID and priority"),
		func(_ context.Context, in *struct {
			VLANPath
			Body api.VLANRequest
		}) (*one[api.VLANStatus], error) {
			v, err := d.ModifyVLAN(in.Owner, in.VLANPath.Name, in.Body)
			return body(v), err
		})
	register(s, operation("DELETE", api.VLANsURL+"/{owner}/{name}", "remove-vlan", "Remove a VLAN interface"),
		func(_ context.Context, in *VLANPath) (*one[api.VLANStatus], error) {
			v, err := d.RemoveVLAN(in.Owner, in.Name)
			return body(v), err
		})
}
