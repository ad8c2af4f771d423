package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// TeamSource is implemented by a driver with teams, and is then served. Adapters are named by their GUIDs, with braces or not, or by their
// names.
type TeamSource interface {
	Teams() []api.Team
	CreateTeam(api.TeamRequest) (api.Team, error)
	// ModifyTeam gives a team another name and type.
	ModifyTeam(name string, q api.TeamRequest) (api.Team, error)
	// RemoveTeam removes a team, and its members from it. It returns the team as it was.
	RemoveTeam(name string) (api.Team, error)
	AttachMember(team, adapter string, q api.TeamMemberRequest) (api.Team, error)
	// DetachMember returns the team as it was.
	DetachMember(team, adapter string) (api.Team, error)
}

// TeamPath identifies a team in a path.
type TeamPath struct {
	Name string `path:"name" doc:"Name of the team."`
}

// TeamMemberPath identifies a member in a path.
type TeamMemberPath struct {
	TeamPath
	Adapter string `path:"adapter" doc:"GUID or name of the adapter."`
}

func (s *Server) teamRoutes(d TeamSource) {
	register(s, operation("GET", api.TeamsURL, "teams", "The teams that were made by command"),
		func(context.Context, *struct{}) (*one[[]api.Team], error) { return body(d.Teams()), nil })
	register(s, operation("GET", api.TeamLinksURL, "team-links", "How the teams are whose wires are open, and what their members have carried"),
		func(context.Context, *struct{}) (*one[[]api.TeamStatus], error) {
			return body(append([]api.TeamStatus{}, s.cfg.Driver.Overview().Teams...)), nil
		})
	register(s, operation("POST", api.TeamsURL, "create-team", "Make a team without members"),
		func(_ context.Context, in *struct{ Body api.TeamRequest }) (*one[api.Team], error) {
			t, err := d.CreateTeam(in.Body)
			return body(t), err
		})
	register(s, operation("PUT", api.TeamsURL+"/{name}", "modify-team", "Give a team another name and type"),
		func(_ context.Context, in *struct {
			TeamPath
			Body api.TeamRequest
		}) (*one[api.Team], error) {
			t, err := d.ModifyTeam(in.Name, in.Body)
			return body(t), err
		})
	register(s, operation("DELETE", api.TeamsURL+"/{name}", "remove-team", "Remove a team, and its members from it"),
		func(_ context.Context, in *TeamPath) (*one[api.Team], error) {
			t, err := d.RemoveTeam(in.Name)
			return body(t), err
		})
	register(s, operation("PUT", api.TeamsURL+"/{name}/members/{adapter}", "attach-member", "Add an adapter to a team"),
		func(_ context.Context, in *struct {
			TeamMemberPath
			Body api.TeamMemberRequest
		}) (*one[api.Team], error) {
			t, err := d.AttachMember(in.Name, in.Adapter, in.Body)
			return body(t), err
		})
	register(s, operation("DELETE", api.TeamsURL+"/{name}/members/{adapter}", "detach-member", "Take an adapter out of a team"),
		func(_ context.Context, in *TeamMemberPath) (*one[api.Team], error) {
			t, err := d.DetachMember(in.Name, in.Adapter)
			return body(t), err
		})
}
