package scenario

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// NIC is how an adapter is set, with its end of the link.
type NIC struct {
	Path       string // of the object that says so
	Congestion congestion.Settings
	// MTU is the payload of a packet at most.
	MTU int
	// Lossless are the priorities at which pauses are sent and obeyed (PFC).
	Lossless uint8
	// Pause is that pauses of the whole link are.
	Pause bool
	// DCBX is that the adapter is willing to work as its switch says, by Protocol.
	DCBX     bool
	Protocol dcb.Protocol
	// LACP is how a simulated host aggregates its links. Live it is the affair of the system behind them.
	LACP HostLACP
	// Take is how fast the host takes what arrives, in bits per second; 0: at once.
	Take uint64
	// Timeout is the local ACK timeout code: 4.096 us * 2^code.
	Timeout uint8
	// AckEvery is after how many packets of a flow a lean sender requests an acknowledgement.
	AckEvery int
}

const (
	defaultCNPInterval = 50 * time.Microsecond
	defaultTimeout     = 14
	defaultAckEvery    = 16
)

// rcm are the keys of congestion control, by name, with what else they are called.
var rcm = sync.OnceValue(func() (all []catalogue.Key) {
	for _, k := range catalogue.KeysFor(catalogue.Target{Generation: catalogue.MLX5}) {
		if k.Group == catalogue.Lookup("DcqcnRpgTimeReset")[0].Group {
			all = append(all, k)
		}
	}
	return all
})

// presets are parameters of congestion control that others have published: those of DCQCN's authors (Zhu et al., SIGCOMM 2015), and
// the defaults of firmware (NVIDIA, DCQCN CC Parameters). The manual's are the registry's defaults.
var presets = map[string]map[string]uint64{
	"authors": {"DcqcnInitialAlphaValue": 1023, "DcqcnDceTcpRtt": 55, "DcqcnDceTcpG": 4, "DcqcnRateReduceMonitorPeriod": 50,
		"DcqcnRpgTimeReset": 55, "DcqcnRpgByteReset": 0, "DcqcnRpgThreshold": 5, "DcqcnRpgAiRate": 40, "DcqcnRpgHaiRate": 200,
		"DcqcnRateToSetOnFirstCnp": 0},
	"firmware": {"DcqcnInitialAlphaValue": 1023, "DcqcnDceTcpRtt": 1, "DcqcnDceTcpG": 5, "DcqcnRateReduceMonitorPeriod": 4,
		"DcqcnRpgTimeReset": 300, "DcqcnRpgByteReset": 32767, "DcqcnRpgThreshold": 1, "DcqcnRpgAiRate": 5, "DcqcnRpgHaiRate": 50,
		"DcqcnRateToSetOnFirstCnp": 0},
}

// keys are values of registry keys.
type keys map[string]uint64

// setting is an adapter that is read.
type setting struct {
	NIC
	keys keys
}

// nics reads the settings of all adapters, and those of some that differ.
func (s *Scenario) nics(o *object) {
	base := &setting{NIC: NIC{Path: "nic", MTU: 1024, Timeout: defaultTimeout, AckEvery: defaultAckEvery}, keys: keys{}}
	base.Congestion.CNPInterval = defaultCNPInterval
	for _, k := range rcm() {
		base.keys[k.Name] = k.Default(catalogue.MLX5, false).Number
	}
	x := o.object("nic")
	base.read(x)
	x.end()
	s.NICs = make([]*NIC, len(s.Graph.Nodes))
	for _, h := range s.Graph.Hosts {
		s.NICs[h] = s.nic(o, h, base)
	}
	if each := o.object("nics"); each.n != nil {
		s.ownNICs(o, each, base)
	}
	for _, h := range s.Graph.Hosts {
		if n := s.NICs[h]; n.Path == base.Path {
			n.LACP.check(x, len(s.Graph.Nodes[h].Links), false)
		}
	}
}

// ownNICs reads the settings of adapters that differ.
func (s *Scenario) ownNICs(o, each *object, base *setting) {
	for _, name := range each.n.fields.names {
		i := s.Graph.Find(name)
		x := each.object(name)
		if i < 0 || !s.Graph.Nodes[i].Host {
			o.r.fail(each.n.fields.by[name], each.field(name), "no host of the topology", s.Graph.names(true))
			return
		}
		own := &setting{NIC: base.NIC, keys: keys{}}
		for k, v := range base.keys {
			own.keys[k] = v
		}
		own.Path = x.path
		own.read(x)
		own.LACP.check(x, len(s.Graph.Nodes[i].Links), true)
		x.end()
		s.NICs[i] = s.nic(x, i, own)
	}
}

// nic completes the adapter of a host.
func (s *Scenario) nic(o *object, host int, x *setting) *NIC {
	n := x.NIC
	interval := n.Congestion.CNPInterval
	n.Congestion = congestion.FromKeys(func(name string) uint64 { return x.keys[name] })
	// In virtual time turns are never late, and packets leave one by one.
	n.Congestion.CNPInterval, n.Congestion.Slack = max(interval, 1), 1
	n.Congestion.Reaction.LineRate = float64(s.Graph.Links[s.Graph.Nodes[host].Links[0]].Rate) / 1e6
	if err := n.Congestion.Complete(); err != nil {
		o.r.fail(o.at, "nic", err.Error(), "")
	}
	return &n
}

func (x *setting) read(o *object) {
	if preset := o.choice("dcqcn", "manual", "authors", "firmware"); o.has("dcqcn") {
		for _, k := range rcm() {
			x.keys[k.Name] = k.Default(catalogue.MLX5, false).Number
		}
		for name, v := range presets[preset] {
			x.keys[name] = v
		}
	}
	for _, k := range rcm() { // an alias sets several keys; each of them may be set besides
		for _, name := range k.Aliases {
			x.key(o, name, k)
		}
	}
	for _, k := range rcm() {
		x.key(o, k.Name, k)
	}
	x.Congestion.CNPInterval = o.time("cnp_interval", x.Congestion.CNPInterval, 0, time.Second)
	x.MTU = o.mtu("mtu", x.MTU)
	x.Lossless = o.priorities("pfc", x.Lossless)
	if pause := o.bool("pause"); o.has("pause") || o.has("pfc") {
		x.Pause = pause
	}
	if x.Pause && o.has("pfc") && x.Lossless != 0 {
		o.r.fail(o.where("pause"), o.field("pause"), "true", "false where pfc has priorities")
	}
	if x.Pause {
		x.Lossless = 0
	}
	if name := o.choice("dcbx", "off", "auto", "ieee", "cee"); o.has("dcbx") {
		x.DCBX = name != "off"
		x.Protocol, _ = dcb.ParseProtocol(name)
	}
	if x.DCBX && x.Pause {
		o.r.fail(o.where("dcbx"), o.field("dcbx"), x.Protocol.String(), "off where pause is true")
	}
	x.LACP.read(o)
	if o.has("take") {
		x.Take = o.rate("take", x.Take)
	} else {
		o.get("take")
	}
	x.Timeout = uint8(o.int("timeout", int(x.Timeout), 1, 31))
	x.AckEvery = o.int("ack_every", x.AckEvery, 1, 1024)
}

// key reads the value of a registry key under a name.
func (x *setting) key(o *object, name string, k catalogue.Key) {
	n := o.get(name)
	if n == nil {
		return
	}
	text := n.text()
	switch v := n.scalar.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	v, err := k.Parse(text)
	if err != nil {
		o.r.wrong(n, o.field(name), k.Allowed())
		return
	}
	x.keys[k.Name] = v.Number
}

// mtu returns a payload that packets may have.
func (o *object) mtu(name string, otherwise int) int {
	mtu := o.int(name, otherwise, 256, 4096)
	if mtu&(mtu-1) != 0 {
		o.r.wrong(o.where(name), o.field(name), "256, 512, 1024, 2048 or 4096 bytes of payload")
		return otherwise
	}
	return mtu
}
