package api

import (
	"context"
	"net/url"
)

// Team is a team of adapters that was made by command (WinOF 5.50, 4.1.6).
type Team struct {
	Name       string       `json:"name"`
	GUID       string       `json:"guid" doc:"With braces, as those of adapters."`
	Type       string       `json:"type" doc:"AFT, SFT, SLB, RLB, ALB, 3AD or SLA."`
	TypeNumber int          `json:"type_number" doc:"The type as vlan_config prints it."`
	IPoIB      bool         `json:"ipoib,omitempty" doc:"Its members are the IPoIB interfaces of adapters with InfiniBand ports."`
	FailBack   bool         `json:"fail_back_to_primary"`
	Carrier    string       `json:"carrier,omitempty" doc:"The adapter that has the team's address and functions: the one that was attached first, also when its wire has been detached. The other members have none."`
	Beside     []string     `json:"beside,omitempty" doc:"Adapters that stand on the team beside its carrier: those that share the wire of a member."`
	Members    []TeamMember `json:"members"`
	VLANs      []string     `json:"vlans" doc:"The names of its VLAN interfaces."`
}

// TeamMember is an adapter whose wire is a team's.
type TeamMember struct {
	Adapter  string `json:"adapter,omitempty" doc:"Its name; missing if the driver's configuration has it no more."`
	GUID     string `json:"guid"`
	Primary  bool   `json:"primary"`
	GivesMAC bool   `json:"set_team_mac_address" doc:"Its MAC is the team's."`
	Status   string `json:"status,omitempty" doc:"Connected, Disconnected or Disabled."`
	Role     string `json:"role,omitempty" doc:"Active or Backup."`
}

// TeamRequest makes a team, or changes one.
type TeamRequest struct {
	Name       string `json:"name" doc:"Of 1 to 63 printable characters, which no other team and no adapter has."`
	Type       string `json:"type" doc:"AFT, SFT, SLB, RLB, ALB, 3AD or SLA."`
	NoFailBack bool   `json:"no_fail_back_to_primary,omitempty" doc:"Of a new one: leave another member active when the primary one comes back."`
	IPoIB      bool   `json:"ipoib,omitempty" doc:"Of a new one: a team of IPoIB interfaces, of type AFT."`
}

// TeamMemberRequest attaches an adapter to a team.
type TeamMemberRequest struct {
	Primary  bool `json:"primary,omitempty" doc:"It is active whenever it can be."`
	GivesMAC bool `json:"set_team_mac_address,omitempty" doc:"The team has its MAC."`
}

func teamURL(name string) string { return TeamsURL + "/" + url.PathEscape(name) }

func memberURL(team, adapter string) string {
	return teamURL(team) + "/members/" + url.PathEscape(adapter)
}

// Teams returns the teams that were made by command.
func (c *Client) Teams(ctx context.Context) (list []Team, err error) {
	err = c.call(ctx, "GET", TeamsURL, nil, nil, &list)
	return list, err
}

// TeamLinks returns how the teams are whose wires are open: those of the configuration, and those that were made by command and have
// members.
func (c *Client) TeamLinks(ctx context.Context) (list []TeamStatus, err error) {
	err = c.call(ctx, "GET", TeamLinksURL, nil, nil, &list)
	return list, err
}

// CreateTeam makes a team without members.
func (c *Client) CreateTeam(ctx context.Context, q TeamRequest) (t Team, err error) {
	err = c.call(ctx, "POST", TeamsURL, nil, q, &t)
	return t, err
}

// ModifyTeam gives a team another name and type.
func (c *Client) ModifyTeam(ctx context.Context, name string, q TeamRequest) (t Team, err error) {
	err = c.call(ctx, "PUT", teamURL(name), nil, q, &t)
	return t, err
}

// RemoveTeam removes a team, and returns it as it was.
func (c *Client) RemoveTeam(ctx context.Context, name string) (t Team, err error) {
	err = c.call(ctx, "DELETE", teamURL(name), nil, nil, &t)
	return t, err
}

// AttachMember adds an adapter to a team.
func (c *Client) AttachMember(ctx context.Context, team, adapter string, q TeamMemberRequest) (t Team, err error) {
	err = c.call(ctx, "PUT", memberURL(team, adapter), nil, q, &t)
	return t, err
}

// DetachMember takes an adapter out of a team, and returns the team as it was.
func (c *Client) DetachMember(ctx context.Context, team, adapter string) (t Team, err error) {
	err = c.call(ctx, "DELETE", memberURL(team, adapter), nil, nil, &t)
	return t, err
}
