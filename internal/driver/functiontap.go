package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/tun"
)

// functionTAP is the network interface of a virtual function. It stays while the function is another one for its programs, and while its
// adapter restarts, so that whoever has it in a network namespace keeps it.
type functionTAP struct {
	owner uint32 // adapter
	host  tapPlace
	end   hostside.End
}

// tapPlace is where a virtual function has its network interface.
type tapPlace struct {
	name  string // of the TAP; empty: it has none
	space string // network namespace in which it is opened, by name or path; empty: the driver's
}

// set applies the settings of a virtual function's network interface.
func (p *tapPlace) set(name, value string) error {
	if value == "none" {
		value = ""
	}
	if name == "netns" {
		if strings.Contains(value, "\x00") || len(value) > mostPath || !strings.HasPrefix(value, "/") && strings.Contains(value, "/") {
			return api.Wrong(name, strconv.Quote(value), "a network namespace, by its name (ip netns) or the path of its file from the root; none")
		}
		p.space = value
		return nil
	}
	if len(value) > tun.MaxName || strings.ContainsAny(value, "/ %:\x00\n\t") || value == "." || value == ".." {
		return api.Wrong(name, strconv.Quote(value), fmt.Sprintf("the name of a network interface, of 1 to %d bytes; none", tun.MaxName))
	}
	p.name = value
	return nil
}

// mostPath is the longest path of a network namespace, as the system has it.
const mostPath = 4095

// checkTAP returns why a virtual function has no interface of that name: somebody else has it. The caller holds changes.
func (d *Driver) checkTAP(f *virtualFunction, name string) error {
	taken := api.Wrong("tap", strconv.Quote(name), "an interface that no adapter and no other virtual function has")
	for i := range d.cfg.Adapters {
		a := &d.cfg.Adapters[i]
		if kind, at := a.HostKind(); kind == config.HostTAP && at == name || a.Interface == name {
			return taken
		}
	}
	for _, o := range d.functions.list {
		if o != f && o.tap.name == name {
			return taken
		}
	}
	return nil
}

// hostFunction returns the Ethernet function of a virtual function that starts, with the interface that it has; nil: it has none. The
// caller holds changes.
func (d *Driver) hostFunction(f *virtualFunction) (*device.EthernetConfig, error) {
	if f.tap.name == "" {
		return nil, nil
	}
	if err := d.checkTAP(f, f.tap.name); err != nil {
		return nil, err
	}
	if t := d.taps[f.tap.name]; t != nil && t.host != f.tap {
		d.closeTAP(f.tap.name) // it is to be in another namespace
	}
	t := d.taps[f.tap.name]
	if t == nil {
		end, err := openTAPFor(f.tap)
		if err != nil {
			return nil, err
		}
		t = &functionTAP{owner: f.cfg.Owner, host: f.tap, end: end}
		d.taps[f.tap.name] = t
	}
	return &device.EthernetConfig{Host: t.end, Kept: true, Config: d.functionEthernet(f)}, nil
}

// functionEthernet is how the Ethernet function of a virtual function works: by the keys of its adapter, with as many receive queues as it
// asks for, of which RSS grants one for each processor that it may use (WinOF-2 24.4, Configuring Virtual Machine Networking:
// IovQueuePairsRequested). A virtual port has more than one where *RssOnHostVPorts allows (VMMQ).
func (d *Driver) functionEthernet(f *virtualFunction) ethernet.Config {
	c := d.ethernetConfig(int(f.cfg.Owner))
	if f.queues > 0 {
		c.NumRSSQueues = f.queues
	}
	if d.Switches.VirtualPort(f.cfg.Name) && d.running[f.cfg.Owner].value("*RssOnHostVPorts") == 0 {
		c.NumRSSQueues = 1
	}
	return c
}

func openTAPFor(p tapPlace) (end hostside.End, err error) {
	if p.space == "" {
		end, err = hostside.OpenTAP(p.name)
	} else {
		end, err = hostside.OpenTAPIn(p.space, p.name)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: tap: %w", api.ErrUnsupported, err)
	}
	if p.space != "" && errors.Is(err, fs.ErrNotExist) {
		err = api.Wrong("netns", strconv.Quote(p.space), "a network namespace that there is, by name or path")
	}
	return end, err
}

// releaseTAP gives an interface back unless a virtual function has it. The caller holds changes.
func (d *Driver) releaseTAP(name string) {
	for _, f := range d.functions.list {
		if f.tap.name == name {
			return
		}
	}
	d.closeTAP(name)
}

func (d *Driver) closeTAP(name string) {
	t := d.taps[name]
	if t == nil {
		return
	}
	delete(d.taps, name)
	if err := t.end.Close(); err != nil {
		d.log.Warn("the network interface of a virtual function is not given back", "interface", name, "cause", err)
	}
}

// pruneTAPs gives the interfaces back that no virtual function of an adapter has. The caller holds changes.
func (d *Driver) pruneTAPs(owner uint32) {
	used := map[string]bool{}
	for _, f := range d.functions.of(owner) {
		used[f.tap.name] = true
	}
	for name, t := range d.taps {
		if t.owner == owner && !used[name] {
			d.closeTAP(name)
		}
	}
}

// closeTAPs gives all back, once the adapters are closed.
func (d *Driver) closeTAPs() {
	d.changes.Lock()
	defer d.changes.Unlock()
	for name := range d.taps {
		d.closeTAP(name)
	}
}
