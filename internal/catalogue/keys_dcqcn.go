package catalogue

import "fmt"

const groupDCQCN Group = "Congestion control (RCM)"

var dcqcnSources = from(ethernetB, "RoCEv2 Congestion Management (RCM): RCM Parameters", ethernetB,
	"RoCEv2 Congestion Management (RCM): Congestion Control Behavior when Changing the Parameters")

// lineRate is the maximum of a rate, which the port's speed limits further.
const lineRate = 1<<32 - 1

// dcqcnKeys is in the order in which mlx5cmd shows them: first the reaction point (RP), then the
// notification point (NP). The defaults are those of the sample output in the manual.
func dcqcnKeys() []Key {
	return dcqcn(append(append(dcqcnEnable("RP", "Slows the adapter's senders down when congestion notifications arrive for priority %d."), []Key{
		{
			Name: "DcqcnClampTgtRate", Defaults: always(0), Choices: disableEnable,
			Description: "Sets the target rate to the current rate at every congestion notification.",
		},
		{
			Name: "DcqcnClampTgtRateAfterTimeInc", Defaults: always(1), Choices: disableEnable,
			Description: "Updates the target rate at a congestion notification even if it was the timer, and not only the byte counter, that raised the rate before.",
		},
		{
			Name: "DcqcnRpgTimeReset", Defaults: always(100), Min: 0, Max: 131071, Unit: "us",
			Description: "Time from one rate increase by the timer to the next; 0: there are none.",
			Chosen:      "What 0 means.",
		},
		{
			Name: "DcqcnRpgByteReset", Defaults: always(400), Min: 0, Max: 32767, Unit: "units of 64 bytes",
			Description: "Bytes sent from one rate increase by the byte counter to the next, in units of 64; 0: there are none.",
			Chosen:      "What 0 means.",
		},
		{
			Name: "DcqcnRpgThreshold", Defaults: always(5), Min: 1, Max: 31, Unit: "raises",
			Description: "Number of increases by the timer or by the byte counter after which fast recovery ends and the target rate grows; with more of both, hyper additive increase begins.",
			Chosen:      "What happens where a number is equal to it, which the manual leaves open: additive increase.",
		},
		{
			Name: "DcqcnRpgAiRate", Defaults: always(10), Min: 1, Max: lineRate, Bound: LineRate, Unit: "Mbit/s",
			Description: "By how much the target rate grows in additive increase.",
		},
		{
			Name: "DcqcnRpgHaiRate", Defaults: always(100), Min: 1, Max: lineRate, Bound: LineRate, Unit: "Mbit/s",
			Description: "By how much the target rate grows in hyper additive increase.",
		},
		{
			Name: "DcqcnAlphaToRateShift", Defaults: always(11), Min: 0, Max: 11,
			Description: "How strongly alpha lowers the rate: each step reduces it by the fraction alpha, in 1024ths, divided by 2 to the power of this value.",
		},
		{
			Name: "DcqcnRpgMinDecFac", Defaults: always(50), Min: 1, Max: 100, Unit: "%",
			Description: "Share of the old rate below which one step never goes.",
			Chosen:      "The lower limit: the manual's range begins with 0, which it rules out as a divisor.",
		},
		{
			Name: "DcqcnRpgMinRate", Defaults: always(1), Min: 0, Max: lineRate, Bound: LineRate, Unit: "Mbit/s",
			Description: "Rate below which a flow never goes; 0 means 0.1 Mbit/s. The line rate switches congestion control off.",
			Chosen:      "What 0 means.",
		},
		{
			Name: "DcqcnRateToSetOnFirstCnp", Defaults: always(3000), Min: 0, Max: lineRate, Bound: LineRate, Unit: "Mbit/s",
			Description: "Rate of a flow after its first congestion notification; with 0 the usual formulas apply.",
			Chosen:      "What 0 means.",
		},
		{
			Name: "DcqcnDceTcpG", Defaults: always(32), Min: 0, Max: 1023, Unit: "1024ths",
			Description: "Weight g with which alpha follows the congestion: alpha becomes (1-g) alpha, plus g if a notification arrived.",
		},
		{
			Name: "DcqcnDceTcpRtt", Defaults: always(4), Min: 0, Max: 131071, Unit: "us",
			Description: "Time from one update of alpha to the next; 0: alpha stays what it is.",
			Chosen:      "What 0 means.",
		},
		{
			Name: "DcqcnRateReduceMonitorPeriod", Defaults: always(32), Min: 0, Max: 1<<32 - 2, Unit: "us",
			Description: "Time in which the rate is lowered at most once, however many notifications arrive; 0: each lowers it.",
			Chosen:      "What 0 means.",
		},
		{
			Name: "DcqcnInitialAlphaValue", Defaults: always(0), Min: 0, Max: 1023, Unit: "1024ths",
			Description: "Value of alpha when a flow's first notification arrives.",
		},
	}...), append(dcqcnEnable("NP", "Answers packets of priority %d that a switch has marked with congestion notifications."), []Key{
		{
			Name: "DcqcnCnpDscp", Defaults: always(0), Min: 0, Max: 63,
			Description: "DSCP of the congestion notifications that the adapter sends.",
		},
		{
			Name: "DcqcnCnp802pPrio", Defaults: always(7), Min: 0, Max: 7,
			Description: "Priority in the 802.1Q tag of the congestion notifications if DcqcnCnpPrioMode is 0.",
		},
		{
			Name: "DcqcnCnpPrioMode", Defaults: always(1),
			Choices: []Choice{
				{0, "own", "as DcqcnCnp802pPrio says"},
				{1, "received", "that of the packet that was marked"},
			},
			Description: "Which priority congestion notifications get.",
		},
	}...)...)...)
}

// dcqcnEnable returns the switches of one role, one per priority. The name without the role sets both.
func dcqcnEnable(role, text string) []Key {
	var a []Key
	for i := range 8 {
		a = append(a, Key{
			Name: fmt.Sprintf("Dcqcn%sEnablePrio%d", role, i), Aliases: []string{fmt.Sprintf("DcqcnEnablePrio%d", i)},
			Defaults: always(0), Choices: disableEnable, Description: fmt.Sprintf(text, i),
		})
	}
	return a
}

// dcqcn adds to keys what all parameters of congestion control have in common.
func dcqcn(keys ...Key) []Key {
	for i := range keys {
		k := &keys[i]
		k.Base, k.Group, k.Generations, k.Scope, k.Type = AdapterClass, groupDCQCN, MLX5, physicalEthernet, DWORD
		k.Effect, k.Sources, k.Status = AtOnce, dcqcnSources, Built
	}
	return keys
}
