package driver

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/sriov"
)

var _ apiserver.FunctionSource = (*Driver)(nil)

// mostFunctionQueues is how many receive queues a virtual function's network interface can ask for.
const mostFunctionQueues = 64

// linkPolicies are the words for what an administrator decides about a link.
var linkPolicies = []string{"auto", "up", "down"}

// CreateFunction creates a virtual function, which stays until it is removed.
func (d *Driver) CreateFunction(q api.FunctionRequest) (api.FunctionStatus, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	i, err := d.find(q.Adapter)
	if err != nil {
		return api.FunctionStatus{}, err
	}
	if err := d.mayCreate(i, q.Name); err != nil {
		return api.FunctionStatus{}, err
	}
	f := &virtualFunction{decision: decision{cfg: device.FunctionConfig{Owner: i, Name: q.Name}}}
	if err := errors.Join(d.suits(i, q.Settings), f.set(q.Settings)); err != nil {
		return api.FunctionStatus{}, err
	}
	if err := d.mayAdmit(q.Name, f.group); err != nil {
		return api.FunctionStatus{}, err
	}
	d.identify(f)
	if err := d.keepFunction(f); err != nil {
		return api.FunctionStatus{}, err
	}
	if err := d.startFunction(f); err != nil {
		d.releaseHost(f.host)
		return api.FunctionStatus{}, errors.Join(wrongFunction(err), d.forgetFunction(f))
	}
	d.functions.add(f)
	d.awaitAlias(f)
	for _, s := range d.functionStatus(i) {
		if s.Name == q.Name {
			return s, nil
		}
	}
	return api.FunctionStatus{}, errors.New("the virtual function is gone already")
}

// mayCreate returns why an adapter has no virtual function of that name, or no more.
func (d *Driver) mayCreate(i uint32, name string) error {
	if err := d.freeName(name); err != nil {
		return err
	}
	if err := d.roomForFunction(i); err != nil {
		return err
	}
	if !d.enabled(i) {
		return api.Wrong("adapter", fmt.Sprintf("%q, which is disabled", d.running[i].Name), "one that is enabled")
	}
	return nil
}

// roomForFunction returns why an adapter's port has no virtual function, or no more.
func (d *Driver) roomForFunction(i uint32) error {
	if d.infiniBand(int(i)) && len(d.functions.of(i)) >= d.mostFabric(i) {
		return fmt.Errorf("%w: an InfiniBand port has GIDs for %d virtual functions, and no more", api.ErrUnsupported, d.mostFabric(i))
	}
	if why := d.noFunctions(int(i)); why != "" {
		return fmt.Errorf("%w: %v: %s", api.ErrUnsupported, sriov.NoVfBarSpace, why)
	}
	have, most, of := len(d.functions.of(i)), sriov.MostPerPort, "a port"
	if d.running[i].Generation == catalogue.MLX4 {
		have, most, of = 0, sriov.MostPerDevice, "a device of the ConnectX-3 class"
		for _, p := range d.portsOf(d.cfg.Slot(int(i))) {
			have += len(d.functions.of(p))
		}
	}
	if have >= most {
		return fmt.Errorf("%w: %s has %d virtual functions, and no more", api.ErrUnsupported, of, most)
	}
	return nil
}

// wrongFunction names the word of a setting that the device refuses.
func wrongFunction(err error) error {
	var refused *command.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Code == command.InUse && strings.HasPrefix(refused.Detail, "Addr"):
		return api.Wrong("address", "taken", "one that no adapter or virtual function has ("+refused.Detail+")")
	case refused.Code == command.Invalid && strings.HasPrefix(refused.Detail, "MAC"):
		return api.Wrong("mac", "taken", "one that no function at the port has in this VLAN")
	}
	return err
}

// setFunction changes a virtual function.
func (d *Driver) setFunction(q api.FunctionRequest) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	f, err := d.functionNamed(q.Name)
	if err != nil {
		return err
	}
	if len(q.Settings) == 0 {
		return api.Wrong("settings", "empty", "mac=, address=, vlan=, vlans=, vsid=, link=, max=, min=, queues=, rdma=, trust=, group=, tap=, host=, hostpeer=, netns=, visible=, guid=, pkeys=")
	}
	next := f.decision
	if err := errors.Join(d.suits(f.cfg.Owner, q.Settings), next.set(q.Settings)); err != nil {
		return err
	}
	if (next.cfg.VLAN != 0 || next.cfg.Virtual.VSID != 0) && len(d.vlansOf(registry.FunctionGUID(f.cfg.Name))) > 0 {
		return api.Wrong("vlan, vsid", "given", "none while the virtual function has VLAN interfaces; vlan_config removevlan removes them")
	}
	if d.infiniBand(int(f.cfg.Owner)) {
		next.cfg.GUID = cmp.Or(next.cfg.Aliases.List[0], next.cfg.GUID)
	}
	before := f.decision
	if err := d.decide(f, next, q.Anew); err != nil {
		return err
	}
	if err := d.keepFunction(f); err != nil {
		return errors.Join(err, d.decide(f, before, q.Anew))
	}
	return nil
}

// decide changes what is decided about a virtual function, all or nothing. It is another one for its programs if it has to be, or is to
// be made anew.
func (d *Driver) decide(f *virtualFunction, next decision, anew bool) error {
	if err := d.admitGroup(f, &next); err != nil {
		return err
	}
	before, wasLive := f.decision, f.live
	anew = anew || f.end != nil && f.end.lost()
	d.functions.decide(f, next)
	defer func() {
		d.releaseHost(before.host)
		d.releaseHost(next.host)
	}()
	switch {
	case !f.live && !d.enabled(f.cfg.Owner):
		return nil
	case f.live && !anew && before.same(&next):
		err := d.host.SetFunction(f.index, d.ruled(f, next.cfg.Virtual))
		if err != nil {
			d.functions.decide(f, before)
		}
		d.reclaimQueue(f)
		return wrongFunction(err)
	}
	d.stopFunction(f) // it is another one for everybody who knows it
	err := d.startFunction(f)
	if err == nil {
		return nil
	}
	d.functions.decide(f, before)
	if wasLive {
		err = errors.Join(wrongFunction(err), d.startFunction(f))
	}
	return wrongFunction(err)
}

// admitGroup lets another group's members at the sockets of a virtual function.
func (d *Driver) admitGroup(f *virtualFunction, next *decision) error {
	if next.group == f.group {
		return nil
	}
	if err := d.mayAdmit(f.cfg.Name, next.group); err != nil {
		return err
	}
	if path := paths.Function(d.cfg.Socket, f.cfg.Name); f.close != nil && d.passedFor(path) == nil {
		if err := admit(path, next.group); err != nil {
			return err
		}
	}
	if f.end != nil && next.host == f.host {
		return f.host.admit(next.group)
	}
	return nil
}

// same reports whether a virtual function stays the same one for its programs and its host when another decision is taken.
func (f *decision) same(next *decision) bool {
	a, b := &f.cfg, &next.cfg
	return a.MAC == b.MAC && a.Addr == b.Addr && a.VLAN == b.VLAN && a.Aliases == b.Aliases && a.Virtual.NoRDMA == b.Virtual.NoRDMA &&
		a.Virtual.VSID == b.Virtual.VSID && f.host == next.host &&
		f.queues == next.queues && f.alone == next.alone
}

// removeFunction removes a virtual function.
func (d *Driver) removeFunction(name string) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	f, err := d.functionNamed(name)
	if err != nil {
		return err
	}
	if err := errors.Join(d.forgetFunction(f), d.dropFunctionVLANs(f)); err != nil {
		return err
	}
	d.stopFunction(f)
	d.dropFunction(f)
	d.releaseHost(f.host)
	return nil
}

func (d *Driver) functionNamed(name string) (*virtualFunction, error) {
	if f := d.functions.find(name); f != nil {
		return f, nil
	}
	var names []string
	for _, f := range d.functions.list {
		names = append(names, strconv.Quote(f.cfg.Name))
	}
	allowed := "there are no virtual functions"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return nil, api.Wrong("virtual function", strconv.Quote(name), allowed)
}

// set applies settings in words, all or none.
func (f *decision) set(words []string) error {
	next := *f
	given := map[string]bool{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || given[name] {
			return api.Wrong("setting", strconv.Quote(w), "NAME=VALUE, each name once")
		}
		given[name] = true
		if err := next.setOne(name, value); err != nil {
			return err
		}
		next.give(name, value)
	}
	if s := next.cfg.Virtual.Share; s.Most != 0 && s.Least > s.Most {
		return api.Wrong("min", fmt.Sprintf("%g", mbits(s.Least)), fmt.Sprintf("at most max, which is %g", mbits(s.Most)))
	}
	if next.cfg.VLAN != 0 && next.cfg.Virtual.VLANs != (bridge.VLANs{}) {
		return api.Wrong("vlans", next.cfg.Virtual.VLANs.String(), "none while the virtual function is in a VLAN, whose tag it does not see")
	}
	if err := next.host.check(given); err != nil {
		return err
	}
	if next.alone && next.host.kind != config.HostTAP {
		return api.Wrong("visible", "netns", "all: it has no network interface (tap=) that would be in a network namespace")
	}
	if err := next.subnetStands(); err != nil {
		return err
	}
	*f = next
	return nil
}

func (f *decision) setOne(name, value string) (err error) {
	v := &f.cfg.Virtual
	switch name {
	case "mac":
		m, err := net.ParseMAC(value)
		if err != nil || len(m) != 6 || m[0]&1 != 0 || [6]byte(m) == [6]byte{} {
			return api.Wrong(name, strconv.Quote(value), "the MAC of one station, as 02:00:00:00:00:01")
		}
		f.cfg.MAC = [6]byte(m)
	case "address":
		p, err := netip.ParsePrefix(value)
		if a, bare := netip.ParseAddr(value); err != nil && bare == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()-8*min(a.BitLen()/32, 8)), nil // /24 or /64
		}
		if a := p.Addr(); err != nil || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() {
			return api.Wrong(name, strconv.Quote(value), "an address with the length of its network, as 192.0.2.9/24")
		}
		f.cfg.Addr = p
	case "vlan":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil || n > 4094 {
			return api.Wrong(name, strconv.Quote(value), "0 (none), 1 to 4094")
		}
		f.cfg.VLAN = uint16(n)
	case "vlans":
		v.VLANs, err = parseVLANs(name, value)
	case "vsid":
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil || n != 0 && overlay.CheckSubnet(uint32(n)) != nil {
			return api.Wrong(name, strconv.Quote(value), fmt.Sprintf("0 (none), %d to %d", overlay.LeastSubnet, overlay.MostSubnet))
		}
		v.VSID = uint32(n)
	case "link":
		for i, w := range linkPolicies {
			if w == value {
				v.Link = device.LinkPolicy(i)
				return nil
			}
		}
		return api.Wrong(name, strconv.Quote(value), strings.Join(linkPolicies, ", "))
	case "max":
		v.Share.Most, err = parseRate(name, value)
	case "min":
		v.Share.Least, err = parseRate(name, value)
	case "queues":
		n, wrong := strconv.ParseUint(value, 10, 8)
		if wrong != nil || n > mostFunctionQueues {
			return api.Wrong(name, strconv.Quote(value), fmt.Sprintf("0 (as the adapter's keys say), 1 to %d", mostFunctionQueues))
		}
		f.queues = int(n)
	case "rdma":
		on, wrong := parseSwitch(name, value)
		v.NoRDMA, err = !on, wrong
	case "trust":
		v.Trust, err = parseSwitch(name, value)
	case "group":
		if f.group = value; value == "none" {
			f.group = ""
			return nil
		}
		_, err = groupID(value)
	case "visible":
		if f.alone = value == "netns"; value != "all" && !f.alone {
			return api.Wrong(name, strconv.Quote(value), "all, netns")
		}
	case "tap", "host", "hostpeer", "netns":
		return f.host.set(name, value)
	case "guid", "pkeys":
		return f.setFabric(name, value)
	default:
		return api.Wrong("setting", strconv.Quote(name), "mac, address, vlan, vlans, vsid, link, max, min, queues, rdma, trust, group, tap, host, hostpeer, netns, visible, guid, pkeys")
	}
	return err
}

// parseVLANs reads the VLANs whose tags a virtual function may use.
func parseVLANs(name, value string) (v bridge.VLANs, err error) {
	if value == "none" {
		return v, nil
	}
	if v, err = bridge.ParseVLANs(value); err != nil {
		return v, api.Wrong(name, strconv.Quote(value), "none, all, or IDs from 1 to 4094 as 10+20-29")
	}
	return v, nil
}

// parseRate reads a rate in Mbit/s, and returns bytes in a second.
func parseRate(name, value string) (uint64, error) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n != n || n < 0 || n > 0 && n < 1 || n > 1e6 {
		return 0, api.Wrong(name, strconv.Quote(value), "0 (none), 1 to 1000000 Mbit/s")
	}
	return uint64(n * 1e6 / 8), nil
}

func mbits(bytes uint64) float64 { return float64(bytes) * 8 / 1e6 }

func parseSwitch(name, value string) (bool, error) {
	switch value {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, api.Wrong(name, strconv.Quote(value), "on, off")
}
