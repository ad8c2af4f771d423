package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// Tools that show parameters.
const (
	// ConfigTool is mlxconfig: the device's non-volatile configuration, which takes effect when the
	// adapter restarts.
	ConfigTool = "mlxconfig"
	// DriverTool is mlxtool show driverparams: values in the driver that can be changed while it runs.
	DriverTool = "driverparams"
)

// Parameter is a parameter of the driver or the device that tools show but that is no registry key: the
// entries of mlxconfig and driverparams. All are numbers.
type Parameter struct {
	// Name as the tool prints it.
	Name string
	// Tool that shows it: ConfigTool or DriverTool.
	Tool        string
	Generations Generation
	Scope       Scope
	Default     Default
	// Min and Max limit parameters without Choices.
	Min, Max uint64
	Choices  []Choice
	// MostMLX4 is the maximum on mlx4 devices if it is less than Max, otherwise 0.
	MostMLX4    uint64
	Unit        string
	Effect      Effect
	Status      Status
	Description string
	// Chosen says which of these facts are not in the manuals but SoftVPI's choice, "" for none.
	Chosen  string
	Sources []Source
}

// Parameters returns all parameters, in the order in which the tools list them. Callers may sort or cut
// the slice, but must not change what its elements point to.
func Parameters() []Parameter {
	return slices.Clone(parameters)
}

// ParametersFor returns those that a tool shows for an adapter of generation g.
func ParametersFor(tool string, g Generation) []Parameter {
	return slices.DeleteFunc(Parameters(), func(p Parameter) bool { return p.Tool != tool || p.Generations&g == 0 })
}

// LookupParameter finds a parameter by name, in any letter case.
func LookupParameter(name string) (Parameter, bool) {
	i := slices.IndexFunc(parameters, func(p Parameter) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return Parameter{}, false
	}
	return parameters[i], true
}

// Parse parses the parameter's value for an adapter of generation g: a number, decimal or with 0x. Errors
// are *ValueError.
func (p Parameter) Parse(text string, g Generation) (uint64, error) {
	n, ok := ParseNumber(text)
	if !ok {
		return 0, &ValueError{p.Name, quote(text), p.Allowed(g)}
	}
	return n, p.Validate(n, g)
}

// Validate checks a value for an adapter of generation g. Errors are *ValueError.
func (p Parameter) Validate(n uint64, g Generation) error {
	if !p.Key(g).allows(n) {
		return &ValueError{p.Name, fmt.Sprint(n), p.Allowed(g)}
	}
	return nil
}

// Allowed says which values an adapter of generation g accepts, in words.
func (p Parameter) Allowed(g Generation) string {
	return p.Key(g).Allowed()
}

// Limits returns the minimum and maximum on an adapter of generation g.
func (p Parameter) Limits(g Generation) (least, most uint64) { return p.Key(g).Limits() }

// Key returns a Key with the parameter's rules and its default.
func (p Parameter) Key(g Generation) Key {
	k := Key{Name: p.Name, Type: QWORD, Min: p.Min, Max: p.Max, Choices: p.Choices, Unit: p.Unit, Generations: p.Generations,
		Defaults: map[Generation]Default{Both: p.Default}, Effect: p.Effect, Status: p.Status}
	if g == MLX4 && p.MostMLX4 > 0 {
		k.Max = p.MostMLX4
	}
	return k
}

var parameters = slices.Concat(deviceParameters(), driverParameters)

var (
	sriovFirmware = from(virtualization, "Enabling SR-IOV in Firmware", winof, "4.5.3.4.1 Enabling SR-IOV in Firmware", winof2,
		"3.3.3.3.1 Enabling SR-IOV in Firmware")
	dcbxFirmware = from(ethernetB, "Data Center Bridging Exchange (DCBX)")
	paramSources = from(winof, "5.5.3.9 show driverParams")
)

var lldpModes = []Choice{
	{0, "off", ""},
	{1, "mandatory", "the TLVs that LLDP asks for"},
	{2, "all", "those of DCBX too"},
}

// deviceParameters returns those of mlxconfig: first those of the device, then each that both ports have.
func deviceParameters() []Parameter {
	a := []Parameter{
		{
			Name: "SRIOV_EN", Generations: Both, Scope: perAdapter, Choices: []Choice{{0, "False", ""}, {1, "True", ""}},
			Status:      Built,
			Description: "Lets the device have virtual functions.",
			Chosen:      "The default.",
			Sources:     sriovFirmware,
		},
		{
			Name: "NUM_OF_VFS", Generations: Both, Scope: perAdapter, Default: Default{Number: 16}, Max: 127, MostMLX4: 126,
			Unit:        "virtual functions",
			Status:      Built,
			Description: "Number of virtual functions for which the device has room: in all (mlx4), or for each port (mlx5).",
			Chosen:      "The default, which is the number that every server accepts.",
			Sources:     append(from(virtualization, "Single Root I/O Virtualization (SR-IOV)"), sriovFirmware...),
		},
	}
	first, second := portParameters(1), portParameters(2)
	for i := range first {
		a = append(a, first[i], second[i])
	}
	for i := range a {
		a[i].Tool, a[i].Effect = ConfigTool, AtRestart
	}
	return a
}

func portParameters(port int) []Parameter {
	name := func(s string) string { return fmt.Sprintf("%s_P%d", s, port) }
	a := []Parameter{
		{
			Name: name("WOL_MAGIC_EN"), Generations: MLX5, Status: Built, Choices: []Choice{{0, "False", ""}, {1, "True", ""}},
			Default:     Default{Number: 1},
			Description: "Wakes the machine when a magic packet reaches port %d, if *WakeOnMagicPacket does too.",
			Chosen:      "The values, and that both ports have it.",
			Sources:     append(from(ethernetB, "Wake-on-LAN (WoL)"), sriovFirmware...),
		},
		{
			Name: name("LINK_TYPE"), Generations: Both, Status: Built, Default: Default{Number: 2},
			Choices:     []Choice{{1, "IB", "InfiniBand"}, {2, "ETH", "Ethernet"}, {3, "VPI", "senses which"}},
			Description: "Protocol of port %d; the other end of its cable has to have the same.",
			Chosen:      "The default, and the value 3.",
			Sources: append(from(winof2, "3.1.1 Mode Configuration", virtualization,
				"Configuring IPoIB in SR-IOV: Firmware Configuration"), sriovFirmware...),
		},
		{
			Name: name("SRIOV_IB_ROUTING_MODE"), Generations: MLX5, Status: Built, Choices: []Choice{{0, "GID", "by GID"},
				{1, "LID", "by LID, as virtual functions with IPoIB need it"}},
			Description: "How InfiniBand packets find virtual functions of port %d: by alias GIDs, with the port's LID, or by LIDs of their own, " +
				"which a subnet manager gives them that enables virtualization (virt_enable 2).",
			Chosen:  "The value 0, and the default.",
			Sources: from(virtualization, "Configuring IPoIB in SR-IOV: Firmware Configuration"),
		},
		{
			Name: name("LLDP_NB_DCBX"), Generations: MLX5, Status: Built, Choices: []Choice{{0, "False", ""}, {1, "True", ""}},
			Description: "Allows DCBX on port %d.",
			Chosen:      "The default.",
			Sources:     dcbxFirmware,
		},
		{
			Name: name("LLDP_NB_RX_MODE"), Generations: MLX5, Status: Built, Choices: lldpModes,
			Description: "Which LLDP frames port %d accepts; DCBX needs all.",
			Chosen:      "The values other than 2, and the default.",
			Sources:     dcbxFirmware,
		},
		{
			Name: name("LLDP_NB_TX_MODE"), Generations: MLX5, Status: Built, Choices: lldpModes,
			Description: "Which LLDP frames port %d sends; DCBX needs all.",
			Chosen:      "The values other than 2, and the default.",
			Sources:     dcbxFirmware,
		},
	}
	for i := range a {
		a[i].Scope = perPort
		a[i].Description = fmt.Sprintf(a[i].Description, port)
	}
	return a
}

const paramChosen = "Default and limits: the manual prints only the name and the purpose."

// driverParameters are those of mlxtool show driverparams.
var driverParameters = []Parameter{
	{
		Name: "MaxNumberOfPacketsToIndicateDPC", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Default: Default{Number: 128}, Min: 1, Max: 65535, Unit: "packets",
		Description: "Most received packets passed to the operating system at once in interrupt mode.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "MaxNumberOfPacketsToIndicateThread", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Default: Default{Number: 128}, Min: 1, Max: 65535, Unit: "packets",
		Description: "Most received packets passed to the operating system at once in polling mode.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "MaxCallsToNdisIndicate", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Default: Default{Number: 10}, Min: 1, Max: 65535, Unit: "calls",
		Description: "Number of chains of packets passed to the operating system before a receive ring yields to others.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "MaxNumTxPacketsToIndicateComplete", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Default: Default{Number: 128}, Min: 1, Max: 65535, Unit: "packets",
		Description: "Most sent packets reported complete to the operating system in one call.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "NicMinRfd", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Default: Default{Number: 1}, Min: 1, Max: 4096, Unit: "descriptors",
		Description: "Fewest receive descriptors that a ring keeps for incoming packets, even if ReturnPacketThreshold asks for fewer.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "UponMaxConsumedReceivesMoveToDPC", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Choices:     disableEnable,
		Description: "Leaves polling for interrupts when a receive ring has used up its share of packets.",
		Chosen:      paramChosen + " The share: MaxNumberOfPacketsToIndicateThread.", Sources: paramSources,
	},
	{
		Name: "UponMaxConsumedTransmitsMoveToDPC", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Built,
		Choices:     disableEnable,
		Description: "Leaves polling for interrupts when a send ring has used up its share of packets.",
		Chosen:      paramChosen + " The share: MaxNumTxPacketsToIndicateComplete.", Sources: paramSources,
	},
	{
		Name: "TrackNBLReturnLatency", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Inherent,
		Choices:     disableEnable,
		Description: "Measures the time until the operating system returns received buffers. Here it returns them with the call that passes them.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "CountersModeFlags", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Inherent,
		Choices:     disableEnable,
		Default:     Default{Number: 1},
		Description: "Answers queries for statistics from values read earlier. Here the counters themselves are in memory, and always read.",
		Chosen:      paramChosen, Sources: paramSources,
	},
	{
		Name: "QueryStatsMsec", Tool: DriverTool, Generations: MLX4, Scope: perAdapter, Effect: AtOnce, Status: Inherent,
		Default: Default{Number: 1000}, Min: 10, Max: 60000, Unit: "ms",
		Description: "Time from one reading of the statistics to the next. Here every query reads them (CountersModeFlags).",
		Chosen:      paramChosen, Sources: paramSources,
	},
}
