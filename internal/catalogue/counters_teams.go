package catalogue

import "slices"

func softTeams() CounterSet {
	return CounterSet{
		Name: "SoftVPI Team", Generations: Both, Short: "team", Instances: "team", Reset: ResetOnDemand,
		Description: "Teams of the configuration, which have the names of the adapters that stand on them, and those of vlan_config that have members. The counters begin anew when a team's wires are opened, as when its members or its type change.",
		Counters: counted(
			level("Up", "up", "teams", "1 while a member sends"),
			level("Speed", "speed", "bits/s", "what the members that send carry together; 0 if nobody knows"),
			level("Members", "members", "members", "members"),
			level("Active Members", "active_members", "members", "members whose role is Active"),
			total("Fail-overs", "fail_overs", "changes", "another member became active because one failed"),
			total("Fail-backs", "fail_backs", "changes", "the primary member became active again"),
			total("Announcements", "announced", "rounds", "rounds in which everybody was told of the active member"),
			total("Peers Told", "peers_told", "peers", "peers that were told another member"),
			total("Frames Lost", "lost", "frames", "frames that no member could send"),
			total("Frames Stood By", "stood_by", "frames", "frames that arrived at a member that does not take them"),
			total("Frames Returned", "returned", "frames", "frames of the team itself that a switch has brought back"),
			total("Strange Frames", "strange", "frames", "frames to a member's address that are for nobody here"),
		),
	}
}

func softTeamMembers() CounterSet {
	return CounterSet{
		Name: "SoftVPI Team Member", Generations: Both, Short: "team_member", Instances: "member", Reset: ResetOnDemand,
		Description: "The members of teams: adapters, or wires of the configuration. Frames and bytes are those of Ethernet on the member's wire, also those that it does not take and the team's own, LACP among them. The counters of LACP are 0 with other types.",
		Counters: counted(slices.Concat([]Counter{
			level("Link Up", "up", "links", "1 while its link is up"),
			level("Active", "active", "members", "1 while its role is Active"),
			level("Disabled", "disabled", "members", "1 while it is out of use"),
			level("Speed", "speed", "bits/s", "what its link carries; 0 if nobody knows"),
		}, carried(), []Counter{
			level("LACP Partner", "lacp_partner", "partners", "1 while a partner speaks"),
			level("LACP Collecting", "lacp_collecting", "members", "1 while both ends agree that it takes frames"),
			level("LACP Distributing", "lacp_distributing", "members", "1 while both ends agree that it sends frames"),
			total("LACP Units Received", "lacp_received", "units", "data units received"),
			total("LACP Units Sent", "lacp_sent", "units", "data units sent"),
			total("LACP Errors", "lacp_errors", "units", "data units and markers that were invalid"),
			total("LACP Timeouts", "lacp_timeouts", "timeouts", "how often its partner has fallen silent"),
			total("LACP Markers", "lacp_markers", "markers", "markers that were answered"),
		})...),
	}
}
