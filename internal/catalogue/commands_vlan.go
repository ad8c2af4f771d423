package catalogue

// vlanConfig returns a command of vlan_config.
func vlanConfig(section, name, arguments, summary string) Command {
	return Command{
		Tool: "vlan_config", Name: name, Arguments: arguments, Status: Built, Generations: Both, Summary: summary,
		Sources: []Source{{winof, section}},
	}
}

const showHelp = "4.1.6.1 Show Help"

func vlanCommands() []Command {
	return []Command{
		vlanConfig("4.1.6.2 Show all Adapters", "showlist", "[IPoIB]", "List all adapters, and teams."),
		vlanConfig("4.1.6.3 Create an Empty Team", "create team", "<Type> <Name> [NoFailBackToPrimary] [IPoIB]",
			"Create a team of type AFT, SFT, SLB, RLB, ALB, 3AD or SLA."),
		vlanConfig("4.1.6.4 Attach Members to Team", "attach team", "<TeamName> {<Adapter-GUID>} [primary] [SetTeamMacAddress]",
			"Add an adapter to a team."),
		vlanConfig(showHelp, "detach team", "<TeamName> {<Adapter-GUID>}", "Remove an adapter from a team."),
		vlanConfig("4.1.6.12 Remove an Entire Team", "removeteam", "<TeamName>", "Delete a team."),
		vlanConfig("4.1.6.9 QueryTeam", "queryteam", "<TeamName>", "Show a team."),
		vlanConfig("4.1.6.6 Modify a Team", "modifyteam", "<TeamName> <NewTeamName> <TeamType>", "Change a team."),
		vlanConfig("4.1.6.5 Create a VLAN", "addvlan", "<TeamName> <VlanName> <VlanId> <Priority> [address=] [tap=]",
			"Add a VLAN interface to a team, an adapter or a virtual function."),
		vlanConfig("4.1.6.11 Remove VLAN", "removevlan", "<TeamName> <VlanName>", "Remove a VLAN interface."),
		vlanConfig("4.1.6.10 QueryVlan", "queryvlan", "<TeamName> <VlanName>", "Show a VLAN interface."),
		vlanConfig("4.1.6.7 Modify a VLAN", "modifyvlan", "<TeamName> <VlanName> <NewVlanName> <NewVlanId> <NewPriority>",
			"Give a VLAN interface another name, ID and priority."),
	}
}
