package catalogue

// mlx5cmd returns a command of mlx5cmd. Its words are options, which the manuals write in any letter case;
// the names omit the dash.
func mlx5cmd(manual, section, name, arguments, summary string) Command {
	return Command{
		Tool: "mlx5cmd", Name: name, Arguments: arguments, Status: Built, Generations: MLX5, Summary: summary,
		Sources: []Source{{manual, section}},
	}
}

const (
	// management is a later manual, for what the manuals at hand leave to it.
	management    = "WinOF-2 24.10"
	rcmSection    = "RoCEv2 Congestion Management (RCM): Mellanox Commands and Examples"
	namedAdapter  = "-Name <adapter>"
	anyAdapter    = "[-Name <adapter>]"
	vfSection     = "VF Monitoring"
	ndkSection    = "Configuring NDK"
	prioritySetup = "RCM with Untagged Traffic"
)

// without returns a command some of whose options concern what adapters do not have.
func without(options []string, c Command) Command {
	c.Unbuilt = options
	return c
}

func mlx5cmdCommands() []Command {
	return []Command{
		mlx5cmd(virtualization, ndkSection, "Stat", anyAdapter, "Show the attributes of adapters, with their RoCE mode."),
		without([]string{"VF"}, mlx5cmd(management, "Management Utilities", "DriverVersion", anyAdapter+" [-PF | -VF <n>]",
			"Show the version of the driver.")),
		mlx5cmd(virtualization, vfSection, "RegKeys", anyAdapter+" [-DynamicKeys]",
			"Show the registry keys with the values in force; -DynamicKeys: those that take effect while the adapter runs."),
		mlx5cmd(virtualization, vfSection, "Features", anyAdapter, "Show which features are enabled."),
		mlx5cmd(ethernetB, rcmSection, "QosConfig", "", "Show and set quality of service."),
		mlx5cmd(ethernetB, rcmSection, "QosConfig Dcqcn", namedAdapter+
			" -Get | -Set -<parameter> <value>... | -Enable [<priority>] | -Disable [<priority>] | -Defaults",
			"Show or set the parameters of congestion control."),
		mlx5cmd(ethernetB, prioritySetup, "QosConfig DefaultUntaggedPriority", namedAdapter+" -Get | -Set <priority>",
			"Show or set the priority of untagged frames."),
		mlx5cmd(management, "Management Utilities", "QosConfig SetupRoceQosConfig", namedAdapter+" -Configure <1 | 2> | -Query",
			"Set an adapter up for RoCE on a lossy (1) or lossless (2) fabric, by DSCP, and restart it."),
		mlx5cmd(ethernetB, rcmSection, "Dcqcn", namedAdapter+" -Restore", "Reset the parameters of congestion control to their defaults."),
		mlx5cmd(management, "Management Utilities", "Dbg", "", "Get information for finding faults, and reset adapters."),
		mlx5cmd(management, "Management Utilities", "Dbg SwReset", namedAdapter, "Reset an adapter. Its connections end."),
		mlx5cmd(management, "Management Utilities", "Dbg StateDump", namedAdapter, "Write the state of an adapter to files."),
		mlx5cmd(management, "Management Utilities", "Dbg Resources", anyAdapter, "Show how many objects exist, and how many there may be."),
		mlx5cmd(management, "Management Utilities", "Dbg CmdStats", anyAdapter, "Show the commands that programs issued, with their times."),
		mlx5cmd(management, "Management Utilities", "Dbg OidStats", anyAdapter,
			"Show the requests to the driver about adapters, with their times."),
		mlx5cmd(virtualization, vfSection, "Dbg ResourceDump", anyAdapter+
			" -Query | -Dump -Segment <n> [-Index1 <n>] [-NumOfObj1 <n>] [-Index2 <n>] [-NumOfObj2 <n>] [-Depth <n>]",
			"Write objects by their numbers to a folder, with those that they refer to; -Query lists the kinds of objects."),
		mlx5cmd(management, "Resiliency: Dump Me Now (DMN)", "Dmn", namedAdapter+" [-NoMstDump] [-CoreDumpQP<QP number>]",
			"Write all that is known about an adapter to a folder of its own (dump me now)."),
		mlx5cmd(virtualization, "Validating NDK", "Sniffer", namedAdapter+" -Start -FileName <file> [-QP <number> [-Comments]] | -Stop | -Status",
			"Capture what the port carries, RDMA and Ethernet frames, to a pcapng file, which the driver writes from -Start until -Stop; "+
				"of one queue pair with -QP, and with -Comments that say what became of each packet."),
		notBuilt(mlx5cmd(management, "Management Utilities", "Temperature", anyAdapter, "Show the temperature of the device.")),
		mlx5cmd(management, "Management Utilities", "NdStat", anyAdapter+" [-Pid <process id>] [-Error]",
			"List the connections, or the queue pairs in error."),
		{Tool: "mlx5cmd", Name: "RssCounters", Arguments: anyAdapter, Status: Built, Generations: MLX5,
			Summary: "Show what each queue of the Ethernet function has received and sent, with the processor that RSS has chosen for it."},
		without([]string{"Set"}, mlx5cmd(management, "Management Utilities", "LinkSpeed", namedAdapter+" -Query | -Set <speed>",
			"Show the speed of the link. It cannot be set here: speed= and limit of the adapter do that, and softvpi link set limits it.")),
		mlx5cmd(management, "Management Utilities", "Trace",
			"-Start [-Level <level>] [-Components <name>=<level>,...] [-Size <MB>] | -Stop [-FileName <file>] | -Collect [-FileName <file>] | -Query",
			"Record a trace of the driver, which Perfetto reads."),
	}
}
