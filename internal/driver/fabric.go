package driver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/umad/server"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// activeTime is how long the driver waits at its start for the ports of its own fabric to become active.
const activeTime = 10 * time.Second

// cabled is the link of an InfiniBand port; it can be unplugged temporarily.
type cabled interface {
	link.InfiniBand
	SetPlugged(in bool)
}

// wiring is the fabric of the adapters with a cable.
type wiring struct {
	rack *live.Rack // nil: another process runs it
	stop context.CancelFunc
	work sync.WaitGroup

	datagrams *server.Server // nil: nobody can attach
}

// close ends the fabric if it is the driver's.
func (w *wiring) close() error {
	if w == nil || w.rack == nil {
		return nil
	}
	w.stop()
	w.work.Wait()
	var err error
	if w.datagrams != nil {
		err = w.datagrams.Close()
	}
	return errors.Join(err, w.rack.Close())
}

// infiniBand reports whether adapter i has an InfiniBand port.
func (d *Driver) infiniBand(i int) bool { return d.running[i].cable() != nil }

// openFabric creates the fabric of the adapters with a cable, if there are any and no other process runs
// it.
func (d *Driver) openFabric() error {
	hosts := hostsOf(&d.cfg)
	f := config.Fabric{}
	if d.cfg.Fabric != nil {
		f = *d.cfg.Fabric
	}
	if len(hosts) == 0 || f.Connect != "" {
		return nil
	}
	top, err := nodesOf(&f, hosts)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	d.wiring = &wiring{rack: live.New(fabric.New(top, rand.Uint64), live.Options{Timing: f.Timing}), stop: stop}
	if err := errors.Join(d.serveFabric(ctx, f.Name), d.serveUDP(ctx, &f)); err != nil {
		return err
	}
	return d.manageSubnet(ctx, top)
}

// host is a device with cables, as a node of the driver's own fabric.
type host struct {
	name string
	topology.Host
}

// hostsOf returns the devices with cables.
func hostsOf(c *config.Config) (hosts []host) {
	for i := range c.Adapters {
		at := c.Slot(i)
		if !c.Adapters[i].Cable() {
			continue
		}
		n := slices.IndexFunc(hosts, func(h host) bool { return h.name == at.Device })
		if n < 0 {
			n = len(hosts)
			hosts = append(hosts, host{at.Device, topology.Host{Ports: at.Ports}})
		}
		hosts[n].Linked = append(hosts[n].Linked, at.Port)
	}
	return hosts
}

// nodesOf returns the nodes of a fabric: those of its netlist, or one switch with the devices, under their
// names.
func nodesOf(f *config.Fabric, hosts []host) (*topology.Topology, error) {
	if f.Netlist != "" {
		file, err := inputfile.Open(f.Netlist, inputfile.Net)
		if err != nil {
			return nil, &config.Error{Path: "fabric.netlist", Err: err}
		}
		defer file.Close()
		top, err := topology.ReadNetlist(file)
		if err != nil {
			return nil, &config.Error{Path: "fabric.netlist: " + f.Netlist, Err: err}
		}
		return top, nil
	}
	r, err := f.LinkRate()
	if err != nil {
		return nil, err
	}
	var around []topology.Host
	for _, h := range hosts {
		around = append(around, h.Host)
	}
	top, err := topology.StarOf(around, r)
	if err != nil {
		return nil, err
	}
	for i, h := range hosts {
		top.Nodes[i].ID, top.Nodes[i].Description = h.name, h.name
	}
	return top, nil
}

// serveFabric lets other processes plug in and attach if the fabric has a name.
func (d *Driver) serveFabric(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	w := d.wiring
	datagrams, err := server.Listen(socket.Path(name), w.rack)
	if err != nil {
		return fmt.Errorf("fabric.name %q: %w", name, err)
	}
	w.rack.Attend(datagrams)
	w.datagrams = datagrams
	cables, err := live.Listen(paths.Cables(name), 0o600)
	if err != nil {
		return fmt.Errorf("fabric.name %q: %w", name, err)
	}
	w.work.Go(func() { d.fabricEnded(w.rack.Serve(ctx, cables)) })
	l, err := ibsim.ListenLocal(name)
	if err != nil {
		return fmt.Errorf("fabric.name %q: %w", name, err)
	}
	w.work.Go(func() { d.fabricEnded(ibsim.NewServer(w.rack).Serve(ctx, l)) })
	return nil
}

// serveUDP lets adapters of other hosts plug in if the fabric has an address for that.
func (d *Driver) serveUDP(ctx context.Context, f *config.Fabric) error {
	if f.Cables == "" {
		return nil
	}
	key, err := keyOf(f)
	if err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(f.Cables)
	if err != nil {
		return fmt.Errorf("fabric.cables: %w", err)
	}
	udp, err := d.wiring.rack.ListenUDP(at, key)
	if err != nil {
		return fmt.Errorf("fabric.cables: %w", err)
	}
	d.wiring.work.Go(func() { udp.Serve(ctx) })
	return nil
}

// keyOf returns the shared key of cables over UDP; nil: none.
func keyOf(f *config.Fabric) ([]byte, error) {
	if f.Key == "" {
		return nil, nil
	}
	key, err := cable.ReadKey(f.Key)
	if err != nil {
		return nil, &config.Error{Path: "fabric.key", Err: err}
	}
	return key, nil
}

func (d *Driver) fabricEnded(err error) {
	if err != nil {
		d.log.Error("the fabric is not served any more", "cause", err)
	}
}

// manageSubnet runs the subnet manager, at a switch if there is one, so that disabling an adapter does not
// end it.
func (d *Driver) manageSubnet(ctx context.Context, top *topology.Topology) error {
	c := config.SubnetManager{}
	if d.cfg.SubnetManager != nil {
		c = *d.cfg.SubnetManager
	}
	if c.Off {
		return nil
	}
	cfg := subnet.Config{Priority: c.Priority, Engines: c.Routing, LMC: c.LMC, Virtual: c.Virtual()}
	if c.Partitions != "" {
		text, err := inputfile.Read(c.Partitions, inputfile.Text)
		if err == nil {
			cfg.Partitions, err = partition.Parse(string(text))
		}
		if err != nil {
			return &config.Error{Path: "subnet_manager.partitions", Err: err}
		}
	}
	files, err := service.In(c.Dir)
	if err != nil {
		return &config.Error{Path: "subnet_manager.dir", Err: err}
	}
	w := d.wiring
	w.work.Go(func() {
		if err := w.rack.Manage(ctx, live.ManagerPlace(top), service.Config{Subnet: cfg, Files: files, Tell: d.tellSubnet}); err != nil {
			d.log.Error("the subnet manager does not run", "cause", err)
		}
	})
	return nil
}

// tellSubnet logs events of the subnet manager.
func (d *Driver) tellSubnet(e subnet.Event) error {
	switch e.Kind {
	case subnet.EventProblem, subnet.EventRefused:
		d.log.Warn("subnet manager", "problem", e.Text)
	default:
		d.log.Info("subnet manager", "event", e.Text)
	}
	return nil
}

// plugIn opens the cable of adapter i.
func (d *Driver) plugIn(i int) (cabled, error) {
	a := &d.cfg.Adapters[i]
	if d.wiring == nil { // another process runs the fabric
		return d.plugInElsewhere(a)
	}
	node, port := a.Node, a.Port
	if node == "" && netlistOf(&d.cfg) == "" {
		slot := d.cfg.Slot(i)
		node, port = slot.Device, uint8(slot.Port)
	}
	at, err := d.wiring.rack.Find(node, port)
	if err != nil {
		return nil, err
	}
	return d.wiring.rack.Plug(at, d.host.Wake)
}

// plugInElsewhere opens an adapter's cable to a fabric that another process runs.
func (d *Driver) plugInElsewhere(a *config.Adapter) (cabled, error) {
	cfg, err := d.cableOf(a)
	if err != nil {
		return nil, err
	}
	return cable.Open(cfg)
}

// plugInEthernet opens an Ethernet adapter's cable to a fabric that another process runs.
func (d *Driver) plugInEthernet(a *config.Adapter) (link.Link, error) {
	cfg, err := d.cableOf(a)
	if err != nil {
		return nil, err
	}
	cfg.Incident = d.incidents.told
	return cable.OpenEthernet(cable.EthernetConfig{Config: cfg, MTU: a.LinkMTU})
}

// cableOf returns where an adapter is plugged in to a fabric that another process runs.
func (d *Driver) cableOf(a *config.Adapter) (cable.Config, error) {
	f := d.cfg.Fabric
	cfg := cable.Config{
		Hello:  cable.Hello{Node: a.Node, Port: a.Port, VCRC: true, Program: fmt.Sprintf("softvpi, process %d, %q", os.Getpid(), a.Name)},
		Notify: d.host.Wake,
		Tell:   func(err error) { d.tellCable(a.Name, f.Connect, err) },
	}
	switch {
	case strings.HasPrefix(f.Connect, cable.Scheme):
		var err error
		if cfg.Key, err = keyOf(f); err != nil {
			return cfg, err
		}
		cfg.UDP = f.Connect
	case filepath.IsAbs(f.Connect):
		cfg.Socket = f.Connect
	default:
		cfg.Socket = paths.Cables(f.Connect)
	}
	return cfg, nil
}

// tellCable logs the state of an adapter's connection to the fabric of another process.
func (d *Driver) tellCable(adapter, fabric string, err error) {
	var refused *cable.RefusedError
	switch {
	case err == nil:
		d.log.Info("plugged into the fabric", "adapter", adapter, "fabric", fabric)
	case errors.As(err, &refused):
		d.log.Warn("the fabric does not let the adapter in; it is asked again and again", "adapter", adapter, "fabric", fabric, "cause",
			refused.Why)
	default:
		d.log.Info("the fabric cannot be reached; it is looked for again and again", "adapter", adapter, "fabric", fabric, "cause", err)
	}
}

// netlistOf returns the file of the fabric's nodes, empty if there is none.
func netlistOf(c *config.Config) string {
	if c.Fabric == nil {
		return ""
	}
	return c.Fabric.Netlist
}

// portAddress returns the address that identifies an adapter's port: its address, else its GID, or a
// placeholder as long as the fabric has not assigned a GID.
func portAddress(a *config.Adapter, l link.InfiniBand) netip.Addr {
	if a.Address.IsValid() {
		return a.Address
	}
	if p := l.Port(); len(p.GUIDs) > 0 && p.GUIDs[0] != 0 {
		return netip.Addr{} // the device takes the GID
	}
	h := fnv.New64a()
	fmt.Fprint(h, a.Name, os.Getpid())
	b := [16]byte{0: 0xfe, 1: 0x80}
	return netip.AddrFrom16([16]byte(h.Sum(b[:8])))
}

// awaitPorts waits until the ports of the driver's own fabric are active, unless the driver runs no subnet
// manager.
func (d *Driver) awaitPorts(ctx context.Context) error {
	if d.wiring == nil || d.cfg.SubnetManager != nil && d.cfg.SubnetManager.Off {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, activeTime)
	defer stop()
	for i := range d.running {
		for d.infiniBand(i) && d.host.Counters()[i].Enabled && !d.active(i) {
			select {
			case <-ctx.Done():
				if errors.Is(ctx.Err(), context.DeadlineExceeded) {
					d.log.Warn("the port is not active yet", "adapter", d.running[i].Name, "state", d.running[i].cable().Port().State)
					return nil
				}
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}

// active reports whether the port of adapter i is active, and the adapter knows it.
func (d *Driver) active(i int) bool {
	info, err := d.host.AdapterInfo(uint32(i))
	return err == nil && info.Up != 0
}

// laneMbps are the usual nominal rates of a lane: on the wire up to QDR, of the data above (FDR: neither).
var laneMbps = [...]uint64{mad.SpeedNone: 0, mad.SpeedSDR: 2500, mad.SpeedDDR: 5000, mad.SpeedQDR: 10000, mad.SpeedFDR10: 10000,
	mad.SpeedFDR: 14000,
	mad.SpeedEDR: 25000, mad.SpeedHDR: 50000, mad.SpeedNDR: 100000, mad.SpeedXDR: 200000}

// portStatus returns an InfiniBand port for status output.
func (d *Driver) portStatus(i int) *InfiniBandStatus {
	cable := d.running[i].cable()
	if cable == nil {
		return nil
	}
	p := cable.Port()
	s := &InfiniBandStatus{
		State: p.State.String(), Physical: p.Physical.String(), LID: uint16(p.LID), LMC: p.LMC, SMLID: uint16(p.SMLID), SMSL: p.SMSL,
		Prefix: p.Prefix, NodeGUID: p.NodeGUID,
		Rate: fmt.Sprintf("%dx%v", mad.Lanes(p.Width), p.Speed),
		Mbps: laneMbps[min(int(p.Speed), len(laneMbps)-1)] * uint64(mad.Lanes(p.Width)),
		MTU:  p.MTU.Bytes(), MaxMTU: p.MaxMTU.Bytes(),
	}
	if len(p.GUIDs) > 0 {
		s.PortGUID = p.GUIDs[0]
	}
	for _, k := range p.PKeys {
		if k != 0 {
			s.PKeys = append(s.PKeys, uint16(k))
		}
	}
	if p.State == mad.PortDown {
		s.Rate, s.Mbps = "", 0
	}
	return s
}
