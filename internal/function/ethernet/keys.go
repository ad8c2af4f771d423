package ethernet

import (
	"errors"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// key is a registry key with its field.
type key struct {
	name  string
	field func(*Config) *int
}

// keys are the registry keys of an Ethernet function.
var keys = []key{
	{"*JumboPacket", func(c *Config) *int { return &c.JumboPacket }},
	{"*ReceiveBuffers", func(c *Config) *int { return &c.ReceiveBuffers }},
	{"*TransmitBuffers", func(c *Config) *int { return &c.TransmitBuffers }},
	{"MaxNumOfMCList", func(c *Config) *int { return &c.MaxNumOfMCList }},
	{"*LsoV1IPv4", func(c *Config) *int { return &c.LsoV1IPv4 }},
	{"*LsoV2IPv4", func(c *Config) *int { return &c.LsoV2IPv4 }},
	{"*LsoV2IPv6", func(c *Config) *int { return &c.LsoV2IPv6 }},
	{"LSOSize", func(c *Config) *int { return &c.LSOSize }},
	{"LSOMinSegment", func(c *Config) *int { return &c.LSOMinSegment }},
	{"LSOTcpOptions", func(c *Config) *int { return &c.LSOTcpOptions }},
	{"LSOIpOptions", func(c *Config) *int { return &c.LSOIpOptions }},
	{"*IPChecksumOffloadIPv4", func(c *Config) *int { return &c.IPChecksumIPv4 }},
	{"*TCPUDPChecksumOffloadIPv4", func(c *Config) *int { return &c.TCPUDPChecksumIPv4 }},
	{"*TCPUDPChecksumOffloadIPv6", func(c *Config) *int { return &c.TCPUDPChecksumIPv6 }},
	{"*RscIPv4", func(c *Config) *int { return &c.RscIPv4 }},
	{"*RscIPv6", func(c *Config) *int { return &c.RscIPv6 }},
	{"*EncapsulatedPacketTaskOffload", func(c *Config) *int { return &c.TunnelNVGRE }},
	{"*EncapsulatedPacketTaskOffloadVxlan", func(c *Config) *int { return &c.TunnelVXLAN }},
	{"*VxlanUDPPortNumber", func(c *Config) *int { return &c.VxlanUDPPort }},
	{"*HeaderDataSplit", func(c *Config) *int { return &c.HeaderDataSplit }},
	{"*PriorityVLANTag", func(c *Config) *int { return &c.PriorityVLANTag }},
	{"PromiscuousVlan", func(c *Config) *int { return &c.PromiscuousVlan }},
	{"VlanId", func(c *Config) *int { return &c.VlanID }},
	{"IgnoreFCS", func(c *Config) *int { return &c.IgnoreFCS }},
	{"*RSS", func(c *Config) *int { return &c.RSS }},
	{"*NumRSSQueues", func(c *Config) *int { return &c.NumRSSQueues }},
	{"*MaxRSSProcessors", func(c *Config) *int { return &c.MaxRSSProcessors }},
	{"*RssBaseProcNumber", func(c *Config) *int { return &c.RssBaseProcNumber }},
	{"*RssBaseProcGroup", func(c *Config) *int { return &c.RssBaseProcGroup }},
	{"*RssMaxProcNumber", func(c *Config) *int { return &c.RssMaxProcNumber }},
	{"*NumaNodeID", func(c *Config) *int { return &c.NumaNodeID }},
	{"*RSSProfile", func(c *Config) *int { return &c.RSSProfile }},
	{"UseRSSForUDP", func(c *Config) *int { return &c.UseRSSForUDP }},
	{"UseRSSForRawIP", func(c *Config) *int { return &c.UseRSSForRawIP }},
	{"RxSmallPacketBypass", func(c *Config) *int { return &c.RxSmallPacketBypass }},
	{"DefaultRecvRingProcessor", func(c *Config) *int { return &c.DefaultRecvRingProcessor }},
	{"RssMonitoringEnabled", func(c *Config) *int { return &c.RssMonitoringEnabled }},
	{"RssCountersActivatedAtStartup", func(c *Config) *int { return &c.RssCountersActivatedAtStartup }},
	{"TxHashDistribution", func(c *Config) *int { return &c.TxHashDistribution }},
	{"*InterruptModeration", func(c *Config) *int { return &c.InterruptModeration }},
	{"RxIntModeration", func(c *Config) *int { return &c.RxIntModeration }},
	{"RxIntModerationProfile", func(c *Config) *int { return &c.RxIntModerationProfile }},
	{"TxIntModerationProfile", func(c *Config) *int { return &c.TxIntModerationProfile }},
	{"RxIntModerationPacketCount", func(c *Config) *int { return &c.RxPacketCount }},
	{"RxIntModerationPacketTime", func(c *Config) *int { return &c.RxPacketTime }},
	{"TxIntModerationPacketCount", func(c *Config) *int { return &c.TxPacketCount }},
	{"TxIntModerationPacketTime", func(c *Config) *int { return &c.TxPacketTime }},
	{"pkt_rate_low", func(c *Config) *int { return &c.PktRateLow }},
	{"pkt_rate_high", func(c *Config) *int { return &c.PktRateHigh }},
	{"RecvCompletionMethod", func(c *Config) *int { return &c.RecvCompletionMethod }},
	{"SendCompletionMethod", func(c *Config) *int { return &c.SendCompletionMethod }},
	{"ThreadPoll", func(c *Config) *int { return &c.ThreadPoll }},
	{"AverageFactor", func(c *Config) *int { return &c.AverageFactor }},
	{"AveragePollThreshold", func(c *Config) *int { return &c.AveragePollThreshold }},
	{"ThisPollThreshold", func(c *Config) *int { return &c.ThisPollThreshold }},
	{"AsyncReceiveIndicate", func(c *Config) *int { return &c.AsyncReceiveIndicate }},
	{"RfdReservationFactor", func(c *Config) *int { return &c.RfdReservationFactor }},
	{"*WakeOnMagicPacket", func(c *Config) *int { return &c.WakeOnMagicPacket }},
	{"*WakeOnPattern", func(c *Config) *int { return &c.WakeOnPattern }},
	{"ReturnPacketThreshold", func(c *Config) *int { return &c.ReturnPacketThreshold }},
	{"NumTcb", func(c *Config) *int { return &c.NumTcb }},
	{"SHCheckForHangTimeInSeconds", func(c *Config) *int { return &c.CheckForHang }},
	{"CheckForHangCQMaxNoProgress", func(c *Config) *int { return &c.MaxNoProgress }},
	{"TxForwardingProcessor", func(c *Config) *int { return &c.TxForwardingProcessor }},
	{"TxInterruptProcessor", func(c *Config) *int { return &c.TxInterruptProcessor }},
	{"MaxNumRssCpus", func(c *Config) *int { return &c.MaxNumRssCpus }},
	{"MaximumWorkingThreads", func(c *Config) *int { return &c.MaximumWorkingThreads }},
	{"MaxNumberOfPacketsToIndicateDPC", func(c *Config) *int { return &c.MaxIndicateDPC }},
	{"MaxNumberOfPacketsToIndicateThread", func(c *Config) *int { return &c.MaxIndicateThread }},
	{"MaxCallsToNdisIndicate", func(c *Config) *int { return &c.MaxCallsToNdisIndicate }},
	{"MaxNumTxPacketsToIndicateComplete", func(c *Config) *int { return &c.MaxNumTxPacketsToIndicateComplete }},
	{"NicMinRfd", func(c *Config) *int { return &c.NicMinRfd }},
	{"UponMaxConsumedReceivesMoveToDPC", func(c *Config) *int { return &c.ReceivesMoveToDPC }},
	{"UponMaxConsumedTransmitsMoveToDPC", func(c *Config) *int { return &c.TransmitsMoveToDPC }},
}

// fixed are the keys that take effect when an adapter starts: its rings, its queues and their processors.
var fixed = map[string]bool{
	"*ReceiveBuffers": true, "*TransmitBuffers": true, "*RSS": true, "*NumRSSQueues": true, "*MaxRSSProcessors": true,
	"*RssBaseProcNumber": true, "*RssBaseProcGroup": true, "*RssMaxProcNumber": true, "*NumaNodeID": true, "*RSSProfile": true,
	"DefaultRecvRingProcessor": true, "TxHashDistribution": true, "AsyncReceiveIndicate": true, "RfdReservationFactor": true,
	"ReturnPacketThreshold": true, "NumTcb": true, "TxForwardingProcessor": true, "TxInterruptProcessor": true,
	"RssMonitoringEnabled": true, "RssCountersActivatedAtStartup": true, "MaxNumRssCpus": true, "MaximumWorkingThreads": true,
}

// limits are the keys that limit what has no limit of that kind on a generation that lacks them.
var limits = map[string]bool{"MaxNumRssCpus": true, "MaximumWorkingThreads": true}

// Keys returns the names of the registry keys, and of the parameters of driverparams, that a Config has.
func Keys() []string {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].name
	}
	return names
}

// entry returns the key's entry in the catalogue for adapters of a generation. A generation that does not have the key
// behaves like the other one without it.
func (k *key) entry(g catalogue.Generation) catalogue.Key {
	if p, ok := catalogue.LookupParameter(k.name); ok {
		return p.Key(g)
	}
	all := catalogue.LookupFor(k.name, catalogue.Target{Generation: g})
	if len(all) == 0 {
		all = slices.Concat(catalogue.LookupFor(k.name, catalogue.Target{Generation: catalogue.MLX4}),
			catalogue.LookupFor(k.name, catalogue.Target{Generation: catalogue.MLX5}))
	}
	return all[0]
}

// plainFrame is *JumboPacket where nothing else says what it is.
const plainFrame = 1514

// standard returns the value of the key if it is not set.
func (k *key) standard(g catalogue.Generation) int {
	e := k.entry(g)
	if e.Generations&g == 0 {
		if limits[k.name] {
			return int(e.Max)
		}
		g = e.Generations
	}
	d := e.Default(g, false)
	switch {
	case k.name == "*JumboPacket":
		return plainFrame
	case d.Auto:
		return Automatic
	}
	return int(d.Number)
}

// check checks the field of the key.
func (k *key) check(c *Config) error {
	e, v := k.entry(c.Generation), *k.field(c)
	value := catalogue.Value{Type: e.Type, Number: uint64(v), Auto: v == Automatic}
	if v < Automatic {
		return &ConfigError{k.name, strconv.Itoa(v), e.Allowed()}
	}
	var bad *catalogue.ValueError
	if err := e.Validate(value); errors.As(err, &bad) {
		return &ConfigError{k.name, strconv.Itoa(v), bad.Allowed}
	}
	return nil
}
