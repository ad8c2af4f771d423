package driver

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/wait"
)

// keys are an adapter's settings from the registry or, by default, the configuration.
type keys struct {
	device.Settings
	rdma         bool // RoCE is on
	fromRegistry bool // RoceMaxFrameSize comes from the registry
}

// keys returns those of adapter i as read at its start.
func (d *Driver) keys(i int) keys {
	a, r := &d.cfg.Adapters[i], d.running[i]
	k := keys{rdma: true, Settings: device.Settings{
		RoCE: device.RoCEv2, UDPPort: a.UDPPort, RoceMaxFrameSize: a.RoceMaxFrameSize, MaxCMRetries: a.MaxCMRetries,
		NoFlowControl: a.RoceRcE2EFlowControlEnable != nil && !*a.RoceRcE2EFlowControlEnable,
		MAC:           stationAddress(r.word("NetworkAddress")), Moderation: r.moderation(), Polling: r.polling(),
	}}
	port := d.cfg.Slot(i).Port
	if k.GUID = r.firmware.PortGUID(port); k.MAC == ([6]byte{}) {
		k.MAC = r.firmware.PortMAC(port)
	}
	switch r.value("roce_mode") {
	case 0:
		k.RoCE = device.RoCEv1
	case 5:
		k.RoCE = device.RoCEv125
	case 4:
		k.rdma = false
	}
	for name, take := range map[string]func(n uint64){
		"roce_udp_dport":             func(n uint64) { k.UDPPort = uint16(n) },
		"RoceMaxFrameSize":           func(n uint64) { k.RoceMaxFrameSize, k.fromRegistry = uint32(n), true },
		"RoceRcE2EFlowControlEnable": func(n uint64) { k.NoFlowControl = n == 0 },
		"*PacketDirect":              func(n uint64) { k.NoRawPackets = n == 0 },
		"*NetworkDirect":             func(n uint64) { k.NoRDMA = n == 0 },
		"MaxCMRetries":               func(n uint64) { k.MaxCMRetries = int(n) },
		"LogNumQp":                   func(n uint64) { k.Limits.QP = 1 << n },
		"LogNumRdmaRc":               func(n uint64) { k.Limits.ReadResponder, k.Limits.ReadInitiator = 1<<n, 1<<n },
		"*JumboPacket":               func(n uint64) { k.MTU = uint32(n) - ethernetHeader },
	} {
		if n, stored := r.number(name); stored {
			take(n)
		}
	}
	if r.cable() != nil { // the following keys concern Ethernet only
		k.rdma, k.RoCE, k.RoceMaxFrameSize, k.fromRegistry, k.MTU = true, device.InfiniBand, 0, false, 0
	}
	return k
}

// ethernetHeader is what *JumboPacket counts in addition to the IP packet.
const ethernetHeader = 14

// Rates of adaptive moderation for the generation that has no keys for them: the defaults of pkt_rate_low
// and pkt_rate_high.
const (
	lowRate  = 150000
	highRate = 170000
)

// moderation returns how the adapter delays the events of completions (WinOF 5.50, 4.6.5 and 4.9.3).
// Static moderation follows the counts and times; adaptive moderation, and that of sends, also the
// profile.
func (r *running) moderation() device.Moderation {
	if r.value("*InterruptModeration") == 0 {
		return device.Moderation{}
	}
	pace := func(side string) device.Pace {
		count, us := r.value(side+"IntModerationPacketCount"), r.value(side+"IntModerationPacketTime")
		return device.Pace{Count: uint32(count), Interval: time.Duration(us) * time.Microsecond}
	}
	m := device.Moderation{
		Receive: pace("Rx"), Send: pace("Tx").Profile(uint32(r.value("TxIntModerationProfile"))), Adaptive: r.value("RxIntModeration") == 2,
		Low: lowRate, High: highRate,
	}
	if m.Adaptive {
		m.Receive = m.Receive.Profile(uint32(r.value("RxIntModerationProfile")))
	}
	if n := r.value("pkt_rate_low"); n > 0 {
		m.Low, m.High = uint32(n), uint32(r.value("pkt_rate_high"))
	}
	return m
}

// polling returns how long the loop looks for packets before it sleeps (WinOF 5.50, 4.6.5).
func (r *running) polling() wait.Polling {
	p := wait.Polling{
		On: true, Weight: uint32(r.value("AverageFactor")), Average: uint32(r.value("AveragePollThreshold")),
		Last: uint32(r.value("ThisPollThreshold")),
	}
	if r.value("RecvCompletionMethod") == 0 {
		p.Rounds = uint32(r.value("ThreadPoll"))
	}
	return p
}

// stationAddress parses a MAC address in the format of NetworkAddress; 0 if it is not one.
func stationAddress(text string) (mac [6]byte) {
	b, err := hex.DecodeString(strings.NewReplacer("-", "", ":", "").Replace(text))
	if err == nil && len(b) == len(mac) {
		mac = [6]byte(b)
	}
	return mac
}

// number returns a numeric setting that the adapter has read, and whether it is in the registry: from the
// most specific place that has it, else the default of the least specific. The caller holds changes or
// settings.
func (r *running) number(name string) (n uint64, stored bool) {
	for _, k := range catalogue.LookupFor(name, r.known().Target()) {
		s, ok := r.taken[r.Place(k).String()+`\`+k.Name]
		if !ok {
			continue
		}
		if n, _ = s.Number(); s.Stored && !s.Auto {
			return n, true
		}
	}
	return n, false
}

// value is number without the origin; 0 for keys that the adapter does not have.
func (r *running) value(name string) uint64 {
	n, _ := r.number(name)
	return n
}

// word returns a text setting.
func (r *running) word(name string) string {
	for _, k := range catalogue.LookupFor(name, r.known().Target()) {
		if s, ok := r.taken[r.Place(k).String()+`\`+k.Name]; ok && !s.Auto {
			return s.Value.Text
		}
	}
	return ""
}
