package catalogue

const (
	groupDumpMeNow   Group = "Dump me now"
	groupSelfHealing Group = "Self-healing"
	groupStateDump   Group = "State dumping"
)

var (
	dumpMeNowSources   = from(winof, "4.7.4 Configuration")
	selfHealingSources = from(winof, "4.10.1.2.1 Miniport Driver Registry Keys")
	stateDumpMLX5      = from(winof2, "5.6 State Dumping")
	stateDumpMLX4      = from(winof, "6.9 State Dumping")
)

func dumpMeNowKeys() []Key {
	return []Key{
		{
			Name: "DumpMeNowDirectory", Base: DriverService, Group: groupDumpMeNow, Generations: Both, Scope: perDriver, Type: String,
			Status: Built,
			Defaults: map[Generation]Default{
				MLX4: {Text: `\SystemRoot\temp\Mlx4_Dump_Me_Now`},
				MLX5: {Text: `\SystemRoot\temp\Mlx5_Dump_Me_Now`},
			},
			Max: 1024, Form: DirectoryPath,
			Description: `Directory for dumps; each dump has a directory of its own in it. A path of the system, one of a drive with the prefix \??\, or one that begins with \SystemRoot\temp, which stands for the driver's own directory.`,
			Chosen:      `The default of WinOF-2, what \SystemRoot\temp stands for, and that a system without drives has them there too: \??\C:\DMN_DIR is C/DMN_DIR in the driver's own directory. ` + onWinOF2Too,
			Sources:     dumpMeNowSources,
		},
		{
			Name: "DumpMeNowTotalCount", Base: DriverService, Group: groupDumpMeNow, Generations: Both, Scope: perDriver, Type: NumericString,
			Status:   Built,
			Defaults: always(128), Min: 0, Max: 0xFFFF, Unit: "dumps",
			Description: "Number of dumps that are kept. A further dump replaces an old one, but never one of the first DumpMeNowPreservedCountMin.",
			Chosen:      onWinOF2Too,
			Sources:     append(from(winof, "4.7.3 Cyclic DMN Mechanism"), dumpMeNowSources...),
		},
		{
			Name: "DumpMeNowPreservedCountMin", Base: DriverService, Group: groupDumpMeNow, Generations: Both, Scope: perDriver,
			Type: NumericString, Status: Built,
			Defaults: always(8), Min: 0, Max: 0xFFFF, Unit: "dumps",
			Description: "Number of first dumps that later ones never replace.",
			Chosen:      onWinOF2Too,
			Sources:     append(from(winof, "4.7.3 Cyclic DMN Mechanism"), dumpMeNowSources...),
		},
		{
			Name: "DmnIovMode", Base: DeviceClass, Path: "Parameters", Group: groupDumpMeNow, Generations: MLX4, Scope: perAdapter, Type: DWORD,
			Status:   Built,
			Defaults: always(2),
			Choices: []Choice{
				{0, "disabled", ""},
				{1, "major objects", "the main objects and their states"},
				{2, "resources", "all resources of virtual functions and their states"},
				{3, "mappings", "everything from queue pairs to rings: a very large dump"},
				{4, "all", "all objects and their states"},
			},
			Description: "What dump-me-now folders contain about virtual functions.",
			Sources:     from(winof, "4.7.4.1 DMN-IOV Configuration"),
		},
	}
}

func selfHealingKeys() []Key {
	return []Key{
		{
			Name: "SHCheckForHangTimeInSeconds", Base: AdapterClass, Group: groupSelfHealing, Generations: Both, Scope: onBoth, Type: DWORD,
			Status:   Built,
			Defaults: always(4), Min: 1, Max: 1<<32 - 1, Unit: "s", Effect: AtOnce,
			Description: "Time from one check of the adapter's health to the next. docs/healing.md says what is checked.",
			Chosen:      onWinOF2Too,
			Sources:     from(winof, "4.10.1.1 Health-Checker Mechanism"),
		},
		{
			Name: "SHMPResetActiveSensorsMask", Base: AdapterClass, Group: groupSelfHealing, Generations: Both, Scope: onBoth, Type: DWORD,
			Status:   Built,
			Defaults: always(0xFFFFFFFF), Min: 0, Max: 0xFFFFFFFF, Hex: true, Effect: AtOnce,
			Description: "Sensors whose errors restart the adapter: 0x8 and 0x10 sends in hardware and software, 0x40 receives in software, 0x10000 and 0x20000 errors of receives and sends; ours: 0x100000 event queues, 0x200000 commands, 0x400000 health counter, 0x800000 internal errors. Others are only logged.",
			Chosen:      "The bits that are called ours. " + onWinOF2Too,
			Sources:     append(from(winof, "4.10.1.1.1 Sensors"), selfHealingSources...),
		},
		{
			Name: "SHSensorsDumpMask", Base: AdapterClass, Group: groupSelfHealing, Generations: Both, Scope: onBoth, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Min: 0, Max: 0xFFFFFFFF, Hex: true, Effect: AtOnce,
			Description: "Sensors whose errors cause a dump, with the same bits as SHMPResetActiveSensorsMask.",
			Chosen:      onWinOF2Too,
			Sources:     append(from(winof, "4.10.1.1.1 Sensors"), selfHealingSources...),
		},
		{
			Name: "CheckForHangCQMaxNoProgress", Base: AdapterClass, Group: groupSelfHealing, Generations: Both, Scope: onBoth, Type: DWORD,
			Status:   Built,
			Defaults: always(4), Min: 1, Max: 1000, Unit: "checks", Effect: AtOnce,
			Description: "Number of consecutive checks without progress after which a part of an adapter counts as stuck; twice as many for send queues in software.",
			Chosen:      onWinOF2Too,
			Sources:     append(from(winof, "4.10.1.1.1 Sensors"), selfHealingSources...),
		},
	}
}

func stateDumpKeys() []Key {
	return []Key{
		{
			Name: "MstDumpMode", Base: DriverService, Path: "Diag", Group: groupStateDump, Generations: MLX5, Scope: perDriver, Type: DWORD,
			Status:   Built,
			Defaults: always(1), Choices: disableEnable,
			Description: "Dumps the state of an adapter into files when certain events happen.",
			Chosen:      "The default and which value disables: the manual prints the name alone.",
			Sources:     stateDumpMLX5,
		},
		{
			Name: "EnableDumpOnUnknownLink", Base: DriverService, Path: "Diag", Group: groupStateDump, Generations: MLX5, Scope: perDriver,
			Type:     DWORD,
			Status:   Built,
			Defaults: always(0), Choices: disableEnable,
			Description: "Dumps when the state of a port becomes unknown: its interface is gone.",
			Sources:     stateDumpMLX5,
		},
		{
			Name: "EnableDumpOnPortDown", Base: DriverService, Path: "Diag", Group: groupStateDump, Generations: MLX5, Scope: perDriver,
			Type: DWORD, Status: Built,
			Defaults: always(0), Choices: disableEnable,
			Description: "Dumps when a port goes down.",
			Sources:     stateDumpMLX5,
		},
		{
			Name: "DisableDumpOnEqStuck", Base: DriverService, Path: "Diag", Group: groupStateDump, Generations: MLX5, Scope: perDriver,
			Type:     DWORD,
			Status:   Built,
			Defaults: always(0), Choices: dumpUnless,
			Description: "Leaves out the dump when an event queue is stuck.",
			Sources:     stateDumpMLX5,
		},
		{
			Name: "DisableDumpOnTxCqStuck", Base: DriverService, Path: "Diag", Group: groupStateDump, Generations: MLX5, Scope: perDriver,
			Type:     DWORD,
			Status:   Built,
			Defaults: always(0), Choices: dumpUnless,
			Description: "Leaves out the dump when a completion queue of sends is stuck.",
			Sources:     stateDumpMLX5,
		},
		{
			Name: "DisableDumpOnRxCqStuck", Base: DriverService, Path: "Diag", Group: groupStateDump, Generations: MLX5, Scope: perDriver,
			Type:     DWORD,
			Status:   Built,
			Defaults: always(0), Choices: dumpUnless,
			Description: "Leaves out the dump when a completion queue of receives is stuck.",
			Sources:     stateDumpMLX5,
		},
		{
			Name: "DumpEventsNum", Base: DriverService, Group: groupStateDump, Generations: Both, Scope: perDriver, Type: DWORD, Status: Built,
			Defaults: always(20), Min: 1, Max: 1000, Unit: "sets",
			Description: "Number of sets of files kept for each kind of event.",
			Chosen:      "The limits; and for WinOF-2 its own driver's path, where the manual prints mlx4_bus.",
			Sources:     append(stateDumpMLX4, stateDumpMLX5...),
		},
		{
			Name: "DumpModeFlags", Base: Absolute, Path: services + `mlx4eth63\Parameters`, Group: groupStateDump, Generations: MLX4,
			Scope: perDriver | ofEthernet, Type: DWORD, Status: Built,
			Defaults: always(0), Min: 0, Max: 0x1C, Step: 4, Hex: true,
			Description: "Port states of Ethernet ports that cause no dump: 0x4 down, 0x8 none, 0x10 up.",
			Chosen:      "That other bits are refused.",
			Sources:     stateDumpMLX4,
		},
		{
			Name: "DumpModeFlags", Base: Absolute, Path: services + `ipoib6\Parameters`, Group: groupStateDump, Generations: MLX4,
			Scope: perDriver | ofIPoIB, Type: DWORD, Status: Built,
			Defaults: always(0), Min: 0, Max: 0x1C, Step: 4, Hex: true,
			Description: "Port states of IPoIB ports that cause no dump: 0x4 down, 0x8 none, 0x10 up.",
			Chosen:      "That other bits are refused.",
			Sources:     stateDumpMLX4,
		},
	}
}

var dumpUnless = []Choice{{0, "dump", ""}, {1, "no dump", ""}}
