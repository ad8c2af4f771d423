// Package perfquery is the tool that shows and resets the counters of ports.
package perfquery

import (
	"context"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

const allCounters = 0xffff

// run is a run of perfquery.
type run struct {
	*ibdiag.Session
	to                                    ibdiag.Route
	port                                  uint8
	ports                                 []uint8 // if several are given
	mask                                  uint64  // counters to reset
	maskGiven                             bool
	extended, all, loop, reset, resetOnly bool
	other                                 *mad.PMAttribute // to show instead of the counters
	caps                                  mad.ClassPortInfo
}

// others are the options for further attributes.
var others = []struct {
	attribute *mad.PMAttribute
	long      string
	letter    byte
	help      string
}{
	{mad.PortXmitDataSL, "xmtsl", 'X', "show what was sent by service level"},
	{mad.PortRcvDataSL, "rcvsl", 'S', "show what was received by service level"},
	{mad.PortXmitDiscardDetails, "xmtdisc", 'D', "show why packets were not sent"},
	{mad.PortRcvErrorDetails, "rcverr", 'E', "show why packets were bad"},
	{mad.PortExtendedSpeedsCounters, "extended_speeds", 'T', "show the counters of extended speeds"},
	{mad.PortOpRcvCounters, "oprcvcounters", 0, "show what was received by operation"},
	{mad.PortFlowCtlCounters, "flowctlcounters", 0, "show flow control packets"},
	{mad.PortVLOpPackets, "vloppackets", 0, "show packets by lane"},
	{mad.PortVLOpData, "vlopdata", 0, "show data by lane"},
	{mad.PortVLXmitFlowCtlUpdateErrors, "vlxmitflowctlerrors", 0, "show errors of flow control by lane"},
	{mad.PortVLXmitWaitCounters, "vlxmitcounters", 0, "show ticks of waiting by lane"},
	{mad.SwPortVLCongestion, "swportvlcong", 0, "show congestion by lane of a switch's port"},
	{mad.PortRcvConCtrl, "rcvcc", 0, "show what congestion control received"},
	{mad.PortSLRcvFECN, "slrcvfecn", 0, "show FECN by service level"},
	{mad.PortSLRcvBECN, "slrcvbecn", 0, "show BECN by service level"},
	{mad.PortXmitConCtrl, "xmitcc", 0, "show the time that congestion control waited"},
	{mad.PortVLXmitTimeCong, "vlxmittimecc", 0, "show that time by lane"},
	{mad.PortSamplesControl, "smplctl", 'c', "show the control of sampling"},
}

// Main runs perfquery.
func Main(ctx context.Context, env tool.Env) int {
	r := &run{mask: allCounters}
	options := []ibdiag.Option{ibdiag.Flag(&r.extended, "extended", 'x', "show the 64-bit counters")}
	for _, o := range others {
		options = append(options, ibdiag.Option{Long: o.long, Letter: o.letter, Help: o.help, Set: func(string) error {
			if r.other == nil {
				r.other = o.attribute
			}
			return nil
		}})
	}
	options = append(options,
		ibdiag.Flag(&r.all, "all_ports", 'a', "all ports together"), ibdiag.Flag(&r.loop, "loop_ports", 'l', "each port by itself"),
		ibdiag.Flag(&r.reset, "reset_after_read", 'r', "reset after showing"), ibdiag.Flag(&r.resetOnly, "Reset_only", 'R',
			"reset, show nothing"))
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "[<lid|guid> [[port(s)] [reset_mask]]]",
		About:     "Shows or resets the counters of a port; without an address, those of this port.",
		Examples: []string{
			"                    # this port", "32 1                 # port 1 of LID 32", "-x 32 1              # 64 bits",
			"-a 32                # all ports together", "-r 32 1              # show and reset",
			"-R 32 2 0x0fff       # reset the error counters of port 2",
			"-l 32 1-10           # ports 1 to 10, one after the other", "-a 32 1,4,8          # ports 1, 4 and 8 together",
		},
		Options: options, Without: "DK", Most: 3,
		Work: func(s *ibdiag.Session, args []string) error {
			r.Session = s
			return r.run(args)
		},
	})
}

func (r *run) run(args []string) (err error) {
	if err := r.parse(args); err != nil {
		return err
	}
	r.to = r.Self()
	if len(args) > 0 {
		if r.to, err = r.Resolve(args[0]); err != nil {
			return err
		}
	}
	data, err := r.query(mad.AttrClassPortInfo, r.port)
	if err != nil {
		return r.lost(err, "classportinfo query")
	}
	if r.caps, err = mad.ParseClassPortInfo(data); err != nil {
		return err
	}
	each := false // ports are queried one by one if they cannot be queried all at once
	if r.caps.CapabilityMask&mad.CapPMAllPortSelect == 0 && r.port == mad.PMAAllPorts {
		if !r.all {
			return ibdiag.Failf("AllPortSelect not supported")
		}
		each = true
	}
	if r.other != nil {
		return r.showOther()
	}
	every := each || r.loop && (r.all || r.port == mad.PMAAllPorts)
	ports := r.ports
	if every {
		if ports, err = r.nodePorts(); err != nil {
			return err
		}
		if each && !r.loop {
			r.Warnf("main", "Emulating AllPortSelect by iterating through all ports")
		}
	}
	together := !r.loop && (each || r.all && len(r.ports) > 1)
	if len(ports) == 0 {
		ports, together = []uint8{r.port}, false
	}
	if !r.resetOnly {
		if err := r.show(ports, together); err != nil {
			return err
		}
	}
	if !r.reset && !r.resetOnly {
		return nil
	}
	for _, p := range ports {
		if err := r.clear(r.counters(), p, r.resetMask()); err != nil {
			return r.lost(err, r.resetName())
		}
	}
	return nil
}

// parse parses ports and mask. Without an address the port is this one.
func (r *run) parse(args []string) error {
	if len(args) == 0 {
		r.port = uint8(r.Port.Device().PortNum)
	}
	if r.all {
		r.port = mad.PMAAllPorts
	}
	if len(args) > 1 {
		ports, err := parsePorts(args[1])
		if err != nil {
			return err
		}
		r.port = ports[0]
		if len(ports) > 1 {
			r.ports = ports
		}
	}
	if len(args) > 2 {
		r.maskGiven = true
		var err error
		r.mask, err = ibdiag.ParseNumber("the mask", args[2], 0, 1<<64-1)
		return err
	}
	return nil
}

// parsePorts parses a port, several separated by commas, or a range.
func parsePorts(text string) (ports []uint8, err error) {
	one := func(w string) uint8 {
		n, e := ibdiag.ParseNumber("the port", w, 0, 255)
		if err == nil {
			err = e
		}
		return uint8(n)
	}
	if low, high, ok := strings.Cut(text, "-"); ok {
		first, last := one(low), one(high)
		if err == nil && first >= last {
			return nil, tool.Usagef("max port must be greater than min port in range; allowed: such as 1-10")
		}
		for p := int(first); p <= int(last); p++ {
			ports = append(ports, uint8(p))
		}
		return ports, err
	}
	for w := range strings.SplitSeq(text, ",") {
		ports = append(ports, one(w))
	}
	return ports, err
}

// nodePorts returns all ports of the node, including an enhanced port 0 of a switch.
func (r *run) nodePorts() (ports []uint8, err error) {
	n, err := r.NodeInfo(r.to)
	if err != nil {
		return nil, r.lost(err, "smp query nodeinfo failed")
	}
	if n.NumPorts == 0 {
		return nil, ibdiag.Failf("smp query nodeinfo: num ports invalid")
	}
	first := 1
	if n.NodeType == mad.NodeSwitch {
		sw, err := r.SwitchInfo(r.to)
		if err != nil {
			return nil, r.lost(err, "smp query nodeinfo failed")
		}
		if sw.EnhancedPort0 {
			first = 0
		}
	}
	for p := first; p <= int(n.NumPorts); p++ {
		ports = append(ports, uint8(p))
	}
	return ports, nil
}

func (r *run) lost(err error, text string) error {
	if r.Context.Err() != nil {
		return err
	}
	return ibdiag.Failf("%s", text)
}

// query requests an attribute of a port.
func (r *run) query(attribute uint16, port uint8) ([]byte, error) {
	return r.Perf(r.to, mad.MethodGet, attribute, []byte{0, port})
}

// clear resets counters of a port.
func (r *run) clear(a *mad.PMAttribute, port uint8, mask uint64) error {
	return r.ClearCounters(r.to, a, port, mask)
}

func (r *run) showOther() error {
	a := r.other
	if !r.resetOnly {
		data, err := r.query(a.ID, r.port)
		if err != nil {
			if a == mad.PortSamplesControl {
				return r.lost(err, "sampctlquery")
			}
			return r.lost(err, "cannot query "+a.Name)
		}
		title := a.Name + " counters"
		if a == mad.PortSamplesControl {
			title = a.Name
		}
		r.Printf("# %s: %s port %d\n%s", title, r.to, r.port, ibdiag.PMALines(data, a.Fields))
	}
	if a == mad.PortSamplesControl || !r.reset && !r.resetOnly {
		return nil
	}
	if err := r.clear(a, r.port, r.mask); err != nil {
		return r.lost(err, "cannot reset "+a.Name)
	}
	return nil
}
