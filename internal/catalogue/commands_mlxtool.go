package catalogue

// Arguments of mlxtool's commands.
const (
	optionalInterface = "[<Interface Name>]"
	optionalDevice    = "[<pci-bus#> <pci-device#> <pci-function#>]"
	neededDevice      = "<pci-bus#> <pci-device#> <pci-function#>"
)

// mlxtool returns a command of mlxtool for adapters of both generations.
func mlxtool(section, name, arguments, summary, description, example string) Command {
	return Command{
		Tool: "mlxtool", Name: name, Arguments: arguments, Status: Built, Generations: Both, Summary: summary, Description: description,
		Example: example, Sources: []Source{{winof, section}},
	}
}

// notBuilt returns a command whose feature adapters do not have.
func notBuilt(c Command) Command {
	c.Status = StoredOnly
	return c
}

// alias returns a command with another spelling of its last word.
func alias(name string, c Command) Command {
	c.Aliases = append(c.Aliases, name)
	return c
}

// onMLX4 returns a command for adapters of that generation only.
func onMLX4(c Command) Command {
	c.Generations = MLX4
	return c
}

func mlxtoolCommands() []Command {
	return []Command{
		mlxtool("5.5.3 show", "show", "", "Show the settings and the activity of ports, devices and the driver.", "", ""),
		mlxtool("5.5.3.4 show port list", "show ports", "", "List the ports.", "", "show ports"),
		mlxtool("5.5.3.5 show device list", "show devices", "", "List the devices with their PCI locations.", "", "show devices"),
		mlxtool("5.5.3.3 show nd", "show nd", "", "Show NetworkDirect.", "", ""),
		mlxtool("5.5.3.3 show nd", "show nd connections", "[-a <IP address>] [-p <Process Id>] [-e] [-n <count>] [-t <time>]",
			"List the connections, or the queue pairs in error.",
			`-a | --address <IP address>   only those of the adapter that has this address (default: all)
-p | --pid <Process Id>       only those of this process (default: all)
-e | --error                  the queue pairs in the error state, instead of the connections
-n | --count <count>          how many are fetched from the driver at a time (default 1000, at most 10000)
-t | --time <seconds>         pause between two fetches; with -e alone (default 2)`,
			"show nd connections -a 127.0.0.2 -e -n 500 -t 1"),
		mlxtool("5.5.3.1 show packet-filter", "show packet-filter", optionalInterface,
			"Show the packet filters of Ethernet interfaces.",
			"Packet Filter is NDIS's number of what passes. Flows are those of programs' raw packet queue pairs, which come\nbefore the filter. An adapter without a host has no filter.",
			`show packet-filter "Ethernet 1"`),
		mlxtool("5.5.3.2 show qos", "show qos", optionalDevice, "Show the settings of quality of service.",
			"They are those that ports work by, with who decided them: the default, the port's own settings (softvpi qos), or the\npeer, by DCBX.", "show qos 1 0 0"),
		mlxtool("5.5.3.6 Show vxlan", "show vxlan", optionalInterface, "Show the off-loads for VXLAN.",
			"An adapter without a host has none.", `show vxlan "Ethernet 1"`),
		mlxtool("5.5.3.7 Show selfhealing", "show selfhealing", "", "Show self-healing.", "", ""),
		mlxtool("5.5.3.7.1 show selfhealing port", "show selfhealing port", optionalInterface,
			"Show the sensors of ports and how often they were reset.",
			"Reset and Dump say what follows from an error: SHMPResetActiveSensorsMask and SHSensorsDumpMask. The state is that\nsince the last reset, the count that since the driver's start.",
			`show selfhealing port "Ethernet 1"`),
		alias("regkey", mlxtool("5.5.3.8 regkeys", "show regkeys", "", "Show registry keys.", "", "")),
		mlxtool("5.5.3.8.1 show regkeys config", "show regkeys config", optionalInterface, "Show the values that the driver runs with.", "",
			`show regkeys config "Ethernet 1"`),
		mlxtool("5.5.3.8.2 Show regkeys diff", "show regkeys diff", optionalInterface,
			"Compare what is in the registry with what the driver runs with.",
			"Lists the keys that are set in the registry. Values differ if a key takes effect only after a restart, if the\nvalue is not allowed, or if nothing acts on the key.", `show regkeys diff "Ethernet 1"`),
		mlxtool("5.5.3.8.3 show regkeys info", "show regkeys info", optionalInterface, "Show the default and the limits of each key.", "",
			`show regkeys info "Ethernet 1"`),
		onMLX4(mlxtool("5.5.3.9 show driverParams", "show driverparams", "<interface name>", "Show parameters inside the driver.",
			"Current is - if the driver does not have the feature yet.", `show driverparams "Ethernet 1"`)),
		onMLX4(mlxtool("5.5.3.10 show perfstats", "show perfstats",
			"<interface name> [RX | TX | RXD <seconds> | TXD <seconds> | ShowAll | RxReset | TxReset | GlobalReset | ResetAll]",
			"Show, or reset, the statistics of the data path.",
			`RX, TX                    the ring's statistics since the last reset
RXD, TXD <seconds>        what was counted within so many seconds from now
ShowAll                   all statistics (default)
RxReset, TxReset          set the ring's statistics back
GlobalReset               set those back that are of no ring
ResetAll                  set all back`, `show perfstats "Ethernet 1" RXD 5`)),

		mlxtool("5.5.2 dbg sub-tool", "dbg", "", "Get information for finding faults, and restart adapters.", "", ""),
		mlxtool("5.5.2.3 mstdump", "dbg mstdump", neededDevice, "Write the state of a device to files.",
			"Six files: three successive dumps of its registers, two of its event queues, and one trace of commands\nand events.",
			"dbg mstdump 1 0 0"),
		mlxtool("5.5.2.4 oid-stats", "dbg oid-stats", optionalInterface,
			"Show the requests to the driver about an interface, with their times in microseconds.", "", `dbg oid-stats "Ethernet 1"`),
		mlxtool("5.5.2.5 cmd-stats", "dbg cmd-stats", neededDevice,
			"Show the commands that programs issued to a device, with their times in milliseconds.", "", "dbg cmd-stats 1 0 0"),
		mlxtool("5.5.2.6 pkeys", "dbg pkeys", optionalInterface, "Show the partition keys.", "", `dbg pkeys "Ethernet 1"`),
		mlxtool("5.5.2.7 Resources", "dbg resources", optionalDevice, "Show how many objects exist, and how many there may be.", "",
			"dbg resources 1 0 0"),
		mlxtool("5.5.2.8 Ipoib-ep", "dbg ipoib-ep", "[-l] [-m] [-r] [<Interface Name>]", "Show the end points that IPoIB knows.",
			"-l  local end points\n-m  multicast end points\n-r  remote end points", `dbg ipoib-ep -m -r "Ethernet 1"`),
		mlxtool("5.5.2.9 Get-state", "dbg get-state", optionalDevice, "Show the state of devices.", "", "dbg get-state 1 0 0"),
		mlxtool("5.5.2.10 Restart", "dbg restart", "<Interface Name>", "Restart an interface.",
			"Its connections end. It reads its registry keys again.", `dbg restart "Ethernet 1"`),
		mlxtool("5.5.2.2 sw-reset", "dbg sw-reset", neededDevice, "Reset a device.", "The connections of all of its ports end.",
			"dbg sw-reset 1 0 0"),
		mlxtool("5.5.2.11 Port Diagnostic Database Register", "dbg pddrinfo", "[<pci-bus#> <pci-device#> <pci-function#> [<port#>]]",
			"Show why the link of a port is down.", "", "dbg pddrinfo 1 0 0 1"),
		mlxtool("4.7.1 DMN Triggers and APIs", "dbg dump-me-now", "<bus> <dev> <func>",
			"Write all that is known about a device to a folder of its own.",
			"The folder is created in DumpMeNowDirectory; DumpMeNowTotalCount and DumpMeNowPreservedCountMin limit their number.",
			"dbg dump-me-now 1 0 0"),
		onMLX4(mlxtool("5.5.2.1 nonrss-capture", "dbg nonrss-capture",
			"<Interface Name> start [<packets> [<bytes>]] | stop | query | collect [<file> [<vPort>]]",
			"Keep the latest packets that were received without an RSS hash.",
			`start    keeps so many packets (default 1024) and so many bytes of each (default 128), where RssMonitoringEnabled is 1
query    shows whether packets are kept, and how many are
collect  moves what is kept to a pcap file (default nonrss.pcap); of vPort 0, the only one
stop     ends it; what was not collected is gone
What RDMA receives has no hash; of the Ethernet function's frames those are kept that RSS does not spread. Connections go over the wire meanwhile.`, `dbg nonrss-capture "Ethernet 1" start 1024 128`)),
		mlxtool("6.8 Extracting WPP Traces", "dbg trace", "start [<level>] [<component>=<level>...] [size=<MB>] [file] | stop | collect | query | read <file>",
			"Record a trace of the driver, which Perfetto reads.",
			"Levels are off, error, warning, information (default) and verbose, of all components or of some: driver, command, loop, "+
				"transport, cm, link.\nsize is that of the buffers, 1 to 1024 (default 100). With file the records are kept in a file of that size, "+
				"which outlives\na driver that is killed; read writes what is in such a file for Perfetto and as text. It needs no driver.",
			"dbg trace query"),
		mlxtool("5.5.2.3 mstdump", "dbg decode", "<directory> [<table>...]", "Show the registers in the files of a dump.",
			"All tables, or those that are named, of the first file of a set, and what differs in the next ones. Needs no driver.",
			"dbg decode temp QP COUNTER"),

		mlxtool("5.5.4 modify Tool", "modify", "", "Change parameters of the driver.", "", ""),
		mlxtool("5.5.4.1 Modify Traffic Classes Bandwidth (BW) Limit Configuration Tool", "modify tc-bw",
			"<Interface Name> <traffic class> <max BW in Mbps> [<traffic class 2> <max BW in Mbps 2>...]",
			"Limit the bandwidth of traffic classes.",
			"Limits are multiples of 100, from 25600 on of 1000: others are rounded down, and those below 100 up. 0 is no limit.\nOther classes keep theirs. softvpi qos set tc-rate= takes any number.",
			`modify tc-bw "Ethernet 1" 3 100 5 300`),
		onMLX4(mlxtool("5.5.3.9 show driverParams", "modify driverparams", "<Interface Name> <parameter> <value> [<parameter 2> <value 2>...]",
			"Change parameters inside the driver.",
			"They act at once, and stay when the driver starts again. The value default puts one back. show driverparams has their names and limits.",
			`modify driverparams "Ethernet 1" MaxNumberOfPacketsToIndicateThread 32`)),
	}
}
