package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// ofFabric are the settings of virtual functions of InfiniBand ports alone, ofFrames those of Ethernet ports'.
var (
	ofFabric = []string{"guid", "pkeys"}
	ofFrames = []string{"mac", "vlan", "vlans", "vsid", "queues", "trust", "host", "hostpeer", "visible"}
)

// neutral are the values of settings of Ethernet ports that ask for nothing.
var neutral = []string{"0", "off", "none"}

// suits returns why settings are not for a virtual function of adapter i, whose port is of the other kind.
func (d *Driver) suits(i uint32, words []string) error {
	fabric := d.infiniBand(int(i))
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch {
		case fabric && slices.Contains(ofFrames, name) && !slices.Contains(neutral, value):
			return api.Wrong(name, strconv.Quote(value), "nothing: the port is InfiniBand's, which has guid, pkeys, tap and netns")
		case fabric && name == "link" && value == "up":
			return api.Wrong(name, strconv.Quote(value), "auto, down: an InfiniBand port has no LID without its fabric")
		case fabric && name == "guid" && d.byLID(i) && (value == "auto" || strings.Contains(value, "+")):
			return api.Wrong(name, strconv.Quote(value), "one GUID as 0x0200c90000000001: with SRIOV_IB_ROUTING_MODE 1 it is that of the function's own port")
		case !fabric && slices.Contains(ofFabric, name):
			return api.Wrong(name, strconv.Quote(value), "nothing: the port is Ethernet's, which has mac and vlan")
		}
	}
	return nil
}

// setFabric applies a setting of a virtual function of an InfiniBand port.
func (f *decision) setFabric(name, value string) error {
	words := strings.Split(value, "+")
	if name == "guid" {
		return f.setGUIDs(value, words)
	}
	p := device.Partitions{All: value == "all"}
	switch {
	case p.All || value == "default":
	case len(words) > device.MostPartitions:
		return api.Wrong(name, strconv.Quote(value), fmt.Sprintf("at most %d partitions", device.MostPartitions))
	default:
		for i, w := range words {
			k, err := strconv.ParseUint(w, 0, 16)
			if err != nil || !ib.PKey(k).Valid() {
				return api.Wrong(name, strconv.Quote(value), "default, all, or P_Keys as 0x8001+0x7fff")
			}
			p.Keys[i], p.Used = ib.PKey(k), i+1
		}
	}
	f.cfg.Virtual.PKeys = p
	return nil
}

func (f *decision) setGUIDs(value string, words []string) error {
	var g device.AliasGUIDs
	wrong := api.Wrong("guid", strconv.Quote(value), "auto (the subnet manager chooses), or 1 or 2 GUIDs as 0x0200c90000000001+auto")
	if len(words) > ibport.VirtualGIDs {
		return wrong
	}
	for i, w := range words {
		n, err := strconv.ParseUint(w, 0, 64)
		if w == "auto" {
			n, err = 0, nil
		} else if n == 0 || n == ^uint64(0) || i > 0 && n == g.List[0] {
			return wrong
		}
		if err != nil {
			return wrong
		}
		g.List[i], g.Used = n, i+1
	}
	f.cfg.Aliases = g
	return nil
}

// identifyFabric gives a virtual function of an InfiniBand port the GUID and the address that it was not given. The GUID is kept.
func (d *Driver) identifyFabric(f *virtualFunction, n uint32) {
	i := f.cfg.Owner
	taken := func(g uint64) bool {
		return slices.ContainsFunc(d.functions.of(i), func(o *virtualFunction) bool {
			return o != f && slices.Contains(o.cfg.Aliases.List[:], g)
		})
	}
	own := functionGUID(d.portGUID(i), n)
	for ; taken(own) && n < 255; n++ {
		own = functionGUID(d.portGUID(i), n+1)
	}
	if f.cfg.Aliases.Used == 0 {
		f.cfg.Aliases = device.AliasGUIDs{List: [ibport.VirtualGIDs]uint64{own}, Used: 1}
		f.give("guid", fmt.Sprintf("%#016x", own))
	}
	f.cfg.MAC = [6]byte{}
	if f.cfg.GUID = f.cfg.Aliases.List[0]; f.cfg.GUID == 0 {
		f.cfg.GUID = own
	}
	if a := f.cfg.Addr.Addr(); !a.IsValid() || a.IsLinkLocalUnicast() { // what it is called without one follows from its GUID
		f.cfg.Addr = netip.PrefixFrom(gid.Of(gid.LinkLocal, f.cfg.GUID), 64)
	}
}

// functionGUID returns the GUID of virtual function n of a port with a GUID: that with another second byte, locally administered.
func functionGUID(port uint64, n uint32) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], port)
	b[0], b[1] = b[0]|2, b[1]^byte(n+1)
	return binary.BigEndian.Uint64(b[:])
}

// portGUID returns the GUID of the InfiniBand port of adapter i, or one made of its name while its fabric has not been there.
func (d *Driver) portGUID(i uint32) uint64 {
	if p := d.running[i].cable().Port(); len(p.GUIDs) > 0 && p.GUIDs[0] != 0 {
		return p.GUIDs[0]
	}
	h := fnv.New64a()
	h.Write([]byte(d.running[i].Name))
	return h.Sum64()
}

// mostFabric is how many virtual functions the InfiniBand port of adapter i has.
func (d *Driver) mostFabric(i uint32) int {
	rows := len(d.running[i].cable().Port().GUIDs)
	if rows == 0 {
		rows = link.GUIDRows
	}
	return ibport.MostVirtual(rows)
}

// byLID reports whether the virtual functions of an InfiniBand port have LIDs of their own (SRIOV_IB_ROUTING_MODE; WinOF-2 24.4,
// Configuring IPoIB in SR-IOV).
func (d *Driver) byLID(i uint32) bool {
	return d.running[i].effective[fmt.Sprintf("SRIOV_IB_ROUTING_MODE_P%d", d.cfg.Slot(int(i)).Port)] != 0
}

// aliasTime is how long a new virtual function's alias GUIDs, or the LID of its virtual port, are waited for.
const aliasTime = 2 * time.Second

// awaitAlias waits until a new virtual function of an active InfiniBand port is up, or it is known why it is not.
func (d *Driver) awaitAlias(f *virtualFunction) {
	if !d.infiniBand(int(f.cfg.Owner)) || !d.active(int(f.cfg.Owner)) || f.cfg.Virtual.Link == device.LinkDown {
		return
	}
	late := time.After(aliasTime)
	for {
		for _, o := range d.host.Functions(f.cfg.Owner) {
			why := o.Fabric != nil && o.Fabric.Why != nil && !errors.Is(o.Fabric.Why, ibport.ErrNotActive)
			if o.Name == f.cfg.Name && (o.Up || why) {
				return
			}
		}
		select {
		case <-late:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// showFabric adds what a virtual function has of an InfiniBand port.
func showFabric(s *api.FunctionStatus, cfg *device.FunctionConfig, now *device.FunctionStatus, port *api.InfiniBandStatus) {
	s.MAC, s.VLANs, s.PKeysGiven = "", "", partitionWords(&cfg.Virtual.PKeys)
	f := &api.FunctionFabric{}
	for _, g := range cfg.Aliases.List[:max(cfg.Aliases.Used, 1)] {
		f.Asked = append(f.Asked, guidWord(g))
	}
	if s.Fabric = f; now == nil || now.Fabric == nil {
		return
	}
	o := now.Fabric
	f.LID, f.Routing = uint16(o.LID), "GID"
	if o.ByLID {
		f.Routing = "LID"
	}
	for _, g := range o.Aliases {
		if g == 0 {
			continue
		}
		if f.GUIDs = append(f.GUIDs, guidWord(g)); port != nil {
			f.GIDs = append(f.GIDs, gid.Of(port.Prefix, g).String())
		}
	}
	if o.Why != nil {
		f.Cause = o.Why.Error()
	}
	for _, k := range o.PKeys {
		f.PKeys = append(f.PKeys, fmt.Sprintf("0x%04x", uint16(k)))
	}
	s.Counters["qp0_refused"] = o.Refused
}

// guidWord is a GUID as settings have it.
func guidWord(g uint64) string {
	if g == 0 {
		return "auto"
	}
	return fmt.Sprintf("0x%016x", g)
}

func partitionWords(p *device.Partitions) string {
	switch {
	case p.All:
		return "all"
	case p.Used == 0:
		return "default"
	}
	var words []string
	for _, k := range p.Keys[:p.Used] {
		words = append(words, fmt.Sprintf("0x%04x", uint16(k)))
	}
	return strings.Join(words, "+")
}
