package vlanconfig

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// nobody is the GUID of no adapter.
const nobody = "{00000000-0000-0000-0000-000000000000}"

// createTeam makes a team without members (WinOF 5.50, 4.1.6.3).
func (s *session) createTeam(ctx context.Context, a *arguments) error {
	t, err := s.client.CreateTeam(ctx, api.TeamRequest{Name: a.values["Name"], Type: a.values["Type"],
		NoFailBack: a.flags["NoFailBackToPrimary"], IPoIB: a.flags["IPoIB"]})
	if err != nil {
		return err
	}
	return s.print(t, "Adding team "+t.Name, "Team created with Guid = "+strings.Trim(t.GUID, "{}"))
}

// attachTeam adds an adapter to a team (4.1.6.4).
func (s *session) attachTeam(ctx context.Context, a *arguments) error {
	t, err := s.client.AttachMember(ctx, a.values["TeamName"], a.values["Adapter-GUID"],
		api.TeamMemberRequest{Primary: a.flags["primary"], GivesMAC: a.flags["SetTeamMacAddress"]})
	if err != nil {
		return err
	}
	return s.print(t, fmt.Sprintf("Adding adapter %s to team %s", t.Members[len(t.Members)-1].GUID, t.Name))
}

// detachTeam takes an adapter out of a team (4.1.6.1). The manual shows no output of it.
func (s *session) detachTeam(ctx context.Context, a *arguments) error {
	t, err := s.client.DetachMember(ctx, a.values["TeamName"], a.values["Adapter-GUID"])
	if err != nil {
		return err
	}
	return s.print(t, fmt.Sprintf("Removing adapter %s from team %s", memberOf(&t, a.values["Adapter-GUID"]), t.Name))
}

// memberOf returns the GUID of a member that was named by that or its adapter's name.
func memberOf(t *api.Team, named string) string {
	for _, m := range t.Members {
		if m.Adapter == named || strings.EqualFold(strings.Trim(m.GUID, "{}"), strings.Trim(named, "{}")) {
			return m.GUID
		}
	}
	return named
}

// removeTeam removes a team with its members (4.1.6.12).
func (s *session) removeTeam(ctx context.Context, a *arguments) error {
	t, err := s.client.RemoveTeam(ctx, a.values["TeamName"])
	if err != nil {
		return err
	}
	lines := []string{"Delete team " + t.Name}
	for _, m := range t.Members {
		lines = append(lines, "Deleting member "+m.GUID)
	}
	return s.print(t, lines...)
}

// queryTeam shows a team (4.1.6.9).
func (s *session) queryTeam(ctx context.Context, a *arguments) error {
	all, err := s.client.Teams(ctx)
	if err != nil {
		return err
	}
	var names []string
	for i := range all {
		if strings.EqualFold(all[i].Name, a.values["TeamName"]) {
			return s.print(all[i], teamLines(all[i])...)
		}
		names = append(names, strconv.Quote(all[i].Name))
	}
	allowed := "there are no teams; vlan_config create team makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return api.Wrong("team", strconv.Quote(a.values["TeamName"]), allowed)
}

// modifyTeam gives a team another name and type (4.1.6.6).
func (s *session) modifyTeam(ctx context.Context, a *arguments) error {
	t, err := s.client.ModifyTeam(ctx, a.values["TeamName"], api.TeamRequest{Name: a.values["NewTeamName"], Type: a.values["TeamType"]})
	if err != nil {
		return err
	}
	return s.print(t, "New Attributes applied")
}

// teamLines shows teams as the manual does (4.1.6.8).
func teamLines(teams ...api.Team) []string {
	lines := []string{fmt.Sprintf("Found %d team(s)", len(teams))}
	for _, t := range teams {
		primary, back := nobody, 0
		if t.FailBack {
			back = 1
		}
		for _, m := range t.Members {
			if m.Primary {
				primary = m.GUID
			}
		}
		for _, f := range []struct {
			name  string
			value any
		}{
			{"Name", t.Name}, {"GUID", t.GUID}, {"PrimaryAdapterGuid", primary}, {"TeamType", t.TypeNumber}, {"L2Protocol", 0},
			{"FallBackToPrimary", back}, {"MemberCount", len(t.Members)},
		} {
			lines = append(lines, fmt.Sprintf("%-19s: %v", f.name, f.value))
		}
		for i, m := range t.Members {
			lines = append(lines, fmt.Sprintf("%-19s: %s", fmt.Sprintf("Member[%d]", i), m.GUID))
		}
		lines = append(lines, fmt.Sprintf("%-19s: %d", "VlanCount", len(t.VLANs)))
		for i, name := range t.VLANs {
			lines = append(lines, fmt.Sprintf("%-19s: %s", fmt.Sprintf("Vlan[%d] Name", i), name))
		}
	}
	return lines
}
