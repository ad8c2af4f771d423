package driver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tun"
)

var _ apiserver.VLANSource = (*Driver)(nil)

const (
	// mostVLANs is how many VLAN interfaces an adapter or a team has at most: its port has room for 127 other functions, which adapters
	// that share it need too.
	mostVLANs = 64
	// mostVLANName is how long the name of one is.
	mostVLANName = 31
	// mostVLANPriority is the highest of IEEE 802.1p.
	mostVLANPriority = 7
)

// ownerNamed returns the GUID of the adapter, team or virtual function of that GUID or name.
func (d *Driver) ownerNamed(name string) (string, error) {
	id := "{" + strings.Trim(name, "{}") + "}"
	if t := d.Roster.Find(name); t != nil {
		if t.IPoIB {
			return "", fmt.Errorf("%w: team %q is of IPoIB interfaces, whose VLANs are partitions", api.ErrUnsupported, t.Name)
		}
		return t.GUID, nil
	}
	if i, err := d.adapterNamed(name); err == nil {
		return d.running[i].GUID(), nil
	}
	for _, f := range d.functions.list {
		if guid := registry.FunctionGUID(f.cfg.Name); strings.EqualFold(f.cfg.Name, name) || strings.EqualFold(guid, id) {
			return guid, nil
		}
	}
	var names []string
	for _, t := range d.Roster.All() {
		names = append(names, strconv.Quote(t.Name))
	}
	for _, r := range d.running {
		names = append(names, strconv.Quote(r.Name))
	}
	for _, f := range d.functions.list {
		names = append(names, strconv.Quote(f.cfg.Name))
	}
	return "", api.Wrong("adapter or team", strconv.Quote(name), "the name or GUID of one: "+strings.Join(names, ", "))
}

func unknownVLAN(name string, names []string) error {
	allowed := "there are no VLAN interfaces; vlan_config addvlan makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return api.Wrong("VLAN interface", strconv.Quote(name), allowed)
}

// CreateVLAN implements apiserver.VLANSource.
func (d *Driver) CreateVLAN(q api.VLANRequest) (api.VLANStatus, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	owner, err := d.ownerNamed(q.Owner)
	if err != nil {
		return api.VLANStatus{}, err
	}
	i := d.carrierOf(owner)
	v := &vlanInterface{VLAN: registry.VLAN{GUID: registry.NewGUID(), Owner: owner, Number: 1, Address: q.Address}}
	v.TAP = d.vlanTAP(owner, &q)
	for _, o := range d.vlans {
		v.Number = max(v.Number, o.Number+1)
	}
	if err := v.identify(&q); err != nil {
		return api.VLANStatus{}, err
	}
	if err := d.checkVLAN(&v.VLAN, v); err != nil {
		return api.VLANStatus{}, err
	}
	if err := d.registry.Apply(v.Keep()...); err != nil {
		return api.VLANStatus{}, err
	}
	if f := d.vlanFunction(owner); i >= 0 && d.enabled(uint32(i)) && (f == nil || f.live) {
		if err := d.startVLAN(v); err != nil {
			d.closeVLAN(v)
			return api.VLANStatus{}, errors.Join(err, d.registry.Apply(v.Forget()))
		}
	}
	d.vlans = append(d.vlans, v)
	return d.describeVLAN(v), nil
}

// vlanTAP is the network interface of a new VLAN interface: the one that is asked for, otherwise, if its owner has one, one that is named
// after that as Linux's own are.
func (d *Driver) vlanTAP(owner string, q *api.VLANRequest) string {
	i := d.carrierOf(owner)
	if q.TAP != "" || i < 0 {
		if q.TAP == "none" {
			return ""
		}
		return q.TAP
	}
	if f := d.vlanFunction(owner); f != nil {
		if f.host.tap() == "" {
			return ""
		}
		return f.host.tap() + "." + strconv.Itoa(q.ID)
	}
	if kind, at := d.cfg.Adapters[i].HostKind(); kind == config.HostTAP {
		return at + "." + strconv.Itoa(q.ID)
	}
	return ""
}

// identify gives a VLAN interface the name, ID and priority of a request, if they can be.
func (v *vlanInterface) identify(q *api.VLANRequest) error {
	switch {
	case q.ID < 1 || q.ID > bridge.LastVLAN:
		return api.Wrong("VLAN ID", strconv.Itoa(q.ID), fmt.Sprintf("1 to %d (0 is no VLAN, and 4095 is reserved: IEEE 802.1Q, 9.6)", bridge.LastVLAN))
	case q.Priority < 0 || q.Priority > mostVLANPriority:
		return api.Wrong("priority", strconv.Itoa(q.Priority), fmt.Sprintf("0 to %d", mostVLANPriority))
	}
	v.Name, v.ID, v.Priority = q.Name, uint32(q.ID), uint32(q.Priority)
	return nil
}

// checkVLAN returns what is wrong with what v, or a new one, is to be.
func (d *Driver) checkVLAN(next *registry.VLAN, v *vlanInterface) error {
	if next.Name == "" || len(next.Name) > mostVLANName || strings.TrimSpace(next.Name) != next.Name || strings.Contains(next.Name, "/") ||
		strings.ContainsFunc(next.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return api.Wrong("VLAN name", strconv.Quote(next.Name),
			fmt.Sprintf("1 to %d printable characters, without / and without space around them", mostVLANName))
	}
	others := slices.DeleteFunc(d.vlansOf(next.Owner), func(o *vlanInterface) bool { return o == v })
	if len(others) >= mostVLANs {
		return api.Wrong("VLAN interfaces", strconv.Itoa(len(others)), fmt.Sprintf("%d at most", mostVLANs))
	}
	for _, o := range others {
		switch {
		case strings.EqualFold(o.Name, next.Name):
			return api.Wrong("VLAN name", strconv.Quote(next.Name), "one that no other VLAN interface there has, in capitals or not")
		case o.ID == next.ID:
			return api.Wrong("VLAN ID", fmt.Sprint(next.ID), "one that no other VLAN interface there has: "+o.Name+" has it")
		}
	}
	if err := d.checkVLANPlace(next); err != nil {
		return err
	}
	if p, err := netip.ParsePrefix(next.Address); next.Address != "" && (err != nil || p.Addr().IsUnspecified() || p.Addr().IsMulticast()) {
		return api.Wrong("address", strconv.Quote(next.Address), "an address with the length of its network, as 192.0.2.9/24")
	}
	return d.checkVLANTAP(next, v)
}

// checkVLANPlace returns why an owner has no VLAN interface with an ID.
func (d *Driver) checkVLANPlace(next *registry.VLAN) error {
	i := d.carrierOf(next.Owner)
	if i < 0 {
		return nil // a team without members, whose interfaces wait for one; or an adapter that is not configured now
	}
	if f := d.vlanFunction(next.Owner); f != nil {
		return d.checkFunctionVLAN(f)
	}
	a := &d.cfg.Adapters[i]
	named := strconv.Quote(d.running[i].Name)
	switch t, _ := d.Roster.Of(i); {
	case d.infiniBand(i):
		return fmt.Errorf("%w: adapter %s has an InfiniBand port, whose VLANs are partitions: part_man makes their interfaces",
			api.ErrUnsupported, named)
	case t != nil && t.GUID != next.Owner:
		return api.Wrong("adapter", named+", a member of team "+strconv.Quote(t.Name), "the team")
	case !a.WholeFrames():
		return api.Wrong("adapter", named+", whose wire are UDP sockets",
			`one with a wire of whole frames ("link": "interface", "tap", "switch", "datagram" or "team")`)
	case uint32(a.VLAN) == next.ID:
		return api.Wrong("VLAN ID", fmt.Sprint(next.ID), "another than that which adapter "+named+" is in itself")
	}
	return nil
}

// checkFunctionVLAN returns why a virtual function has no VLAN interfaces. Whoever set vlan= of one has its frames tagged for it, and the
// function is not to know: what it tags itself is dropped by the switch in the port, and the manual takes the keys of VLANs away from it
// (WinOF 5.50, 4.6.5: no VlanId there; change log, 659090: *PriorityVLANTag has neither priority nor VLAN). In a
// virtual subnet a frame has no tag (RFC 7348, 6.1: discarded; RFC 7637, 3.3: must not, dropped).
func (d *Driver) checkFunctionVLAN(f *virtualFunction) error {
	named := strconv.Quote(f.cfg.Name)
	switch {
	case d.infiniBand(int(f.cfg.Owner)):
		return fmt.Errorf("%w: the virtual function %s is at an InfiniBand port, whose VLANs are partitions: pkeys= says which it has",
			api.ErrUnsupported, named)
	case f.cfg.VLAN != 0:
		return api.Wrong("adapter or team", fmt.Sprintf("%s, whose frames the host puts in VLAN %d, so that it may have no tags of its own",
			named, f.cfg.VLAN), "a virtual function with vlan=0")
	case f.cfg.Virtual.VSID != 0:
		return api.Wrong("adapter or team", fmt.Sprintf("%s in virtual subnet %d, where frames have no tags (RFC 7348, 6.1; RFC 7637, 3.3)",
			named, f.cfg.Virtual.VSID), "a virtual function with vsid=0")
	}
	return nil
}

// checkVLANTAP returns why v cannot have the network interface that it is to have.
func (d *Driver) checkVLANTAP(next *registry.VLAN, v *vlanInterface) error {
	if next.TAP == "" {
		return nil
	}
	if err := new(hostPlace).set("tap", next.TAP); err != nil {
		return api.Wrong("tap", strconv.Quote(next.TAP), fmt.Sprintf("the name of a network interface, of 1 to %d bytes; none", tun.MaxName))
	}
	for _, o := range d.vlans {
		if o != v && o.TAP == next.TAP {
			return api.Wrong("tap", strconv.Quote(next.TAP), "an interface that no other VLAN interface has")
		}
	}
	return d.checkHost(nil, hostPlace{kind: config.HostTAP, at: next.TAP})
}

// ModifyVLAN implements apiserver.VLANSource: all or nothing. An interface with another name or VLAN is another one for its programs; its
// host's network interface stays. Others go on.
func (d *Driver) ModifyVLAN(owner, name string, q api.VLANRequest) (api.VLANStatus, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	v, err := d.vlanNamed(owner, name)
	if err != nil {
		return api.VLANStatus{}, err
	}
	next := vlanInterface{VLAN: v.VLAN}
	if err := next.identify(&q); err != nil {
		return api.VLANStatus{}, err
	}
	if err := d.checkVLAN(&next.VLAN, v); err != nil {
		return api.VLANStatus{}, err
	}
	before, was := v.VLAN, v.live
	if err := d.registry.Apply(next.Keep()...); err != nil {
		return api.VLANStatus{}, err
	}
	if d.stopVLAN(v); was {
		v.VLAN = next.VLAN
		if err = d.startVLAN(v); err != nil {
			v.VLAN = before
			return d.describeVLAN(v), errors.Join(err, d.registry.Apply(v.Keep()...), d.startVLAN(v))
		}
	}
	v.VLAN = next.VLAN
	return d.describeVLAN(v), nil
}

// RemoveVLAN implements apiserver.VLANSource.
func (d *Driver) RemoveVLAN(owner, name string) (api.VLANStatus, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	v, err := d.vlanNamed(owner, name)
	if err != nil {
		return api.VLANStatus{}, err
	}
	was := d.describeVLAN(v)
	if err := d.registry.Apply(v.Forget()); err != nil {
		return was, err
	}
	d.stopVLAN(v)
	d.closeVLAN(v)
	d.vlans = slices.DeleteFunc(d.vlans, func(o *vlanInterface) bool { return o == v })
	return was, nil
}
