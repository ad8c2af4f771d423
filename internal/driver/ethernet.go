package driver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/hostside"
	machine "github.com/softvpi/softvpi/internal/os/processors"
)

// mostEvents is how many events of an Ethernet function wait to be written; more are lost.
const mostEvents = 64

// putHost gives adapter i an Ethernet function, if its configuration names a host for one. Whoever gets an error closes nothing.
func (d *Driver) putHost(i int, cfg *device.AdapterConfig) error {
	a := &d.cfg.Adapters[i]
	kind, at := a.HostKind()
	if kind == "" {
		return nil
	}
	if x, ok := d.hosts.Load(uint32(i)); ok { // the adapter has changed its wire
		cfg.Ethernet = d.hostOf(i, x.(hostside.End))
		return nil
	}
	var end hostside.End
	var err error
	switch kind {
	case config.HostTAP:
		end, err = hostside.OpenTAP(at)
	case config.HostDatagram:
		end, err = hostside.OpenDatagram(at, a.HostPeer)
	case config.HostStream:
		end, err = hostside.OpenStream(at)
	}
	if err != nil {
		return err
	}
	d.hosts.Store(uint32(i), end)
	if x, ok := end.(hostside.Addressed); ok {
		if err := x.Readdress(d.registry.HostAddresses(d.running[i].known())); err != nil { // which its administrator can do
			d.log.Warn("the host's interface does not have its addresses again", "adapter", a.Name, "cause", err)
		}
	}
	cfg.Ethernet = d.hostOf(i, end)
	return nil
}

// hostOf returns the Ethernet function of adapter i for its host, which outlives it: closeHosts closes it.
func (d *Driver) hostOf(i int, end hostside.End) *device.EthernetConfig {
	return &device.EthernetConfig{Host: end, Kept: true, Config: d.ownEthernet(i), Raised: d.ethernetEvents(i)}
}

// closeHosts closes the hosts of the Ethernet functions, once the adapters are closed.
func (d *Driver) closeHosts() (err error) {
	d.hosts.Range(func(_, x any) bool {
		err = errors.Join(err, x.(hostside.End).Close())
		return true
	})
	return err
}

// keepAddresses keeps the IP addresses of the interfaces that go away with the driver, for its next start.
func (d *Driver) keepAddresses() {
	d.changes.Lock()
	defer d.changes.Unlock()
	d.hosts.Range(func(i, x any) bool {
		r := d.running[i.(uint32)]
		host, ok := x.(hostside.Addressed)
		if !ok {
			return true
		}
		list, err := host.Addresses()
		if err == nil && !slices.Equal(list, d.registry.HostAddresses(r.known())) {
			err = d.registry.Apply(r.known().KeepHostAddresses(list))
		}
		if err != nil {
			d.log.Warn("the addresses of the host's interface are not kept", "adapter", r.Name, "cause", err)
		}
		return true
	})
}

// ethernetConfig returns how the Ethernet function of adapter i works, by its keys: *JumboPacket is 0, as much as the link
// carries, unless it is stored.
func (d *Driver) ethernetConfig(i int) ethernet.Config {
	r := d.running[i]
	c := ethernet.Defaults(r.Generation)
	c.JumboPacket = 0
	for _, name := range ethernet.Keys() {
		if n, stored := r.number(name); stored {
			c.Set(name, int(n))
		}
	}
	for name, n := range d.registry.DriverParameters(r.known()) {
		c.Set(name, int(n))
	}
	if first, stored := r.number("RssBaseCpu"); stored {
		if _, own := r.number("*RssBaseProcNumber"); !own {
			c.RssBaseProcGroup, c.RssBaseProcNumber = int(first)/rss.GroupSize, int(first)%rss.GroupSize
		}
	}
	if n, set := r.effective[fmt.Sprint("WOL_MAGIC_EN_P", d.cfg.Slot(i).Port)]; set && n == 0 {
		c.WakeOnMagicPacket = 0
	}
	if d.vxlanOff(i) != "" {
		c.TunnelVXLAN = 0
	}
	for _, p := range machine.List() {
		c.Machine = append(c.Machine, rss.Processor{Group: p.Number / rss.GroupSize, Number: p.Number % rss.GroupSize, Node: p.Node})
	}
	return c
}

// lastProcessor returns the highest number of a processor.
func lastProcessor() int {
	list := machine.List()
	return list[len(list)-1].Number
}

// startEthernet makes the Ethernet function of adapter i work, with its current keys.
func (d *Driver) startEthernet(i int) error {
	if d.cfg.Adapters[i].Host == "" {
		return nil
	}
	index := uint32(i)
	return errors.Join(d.host.SetEthernet(index, false), d.host.ConfigureEthernet(index, d.ownEthernet(i)),
		d.host.SetEthernet(index, true))
}

// changeEthernet changes the Ethernet function of adapter i while it works, to its current keys: those that are read only at its
// start are still as they were then.
func (d *Driver) changeEthernet(i int) {
	if d.cfg.Adapters[i].Host == "" {
		return
	}
	if err := d.host.ChangeEthernet(uint32(i), d.ownEthernet(i)); err != nil {
		d.log.Warn("the Ethernet function does not follow its keys", "adapter", d.running[i].Name, "cause", err)
	}
}

// raisedEvent is an event of the Ethernet function of an adapter.
type raisedEvent struct {
	adapter int
	ethernet.Event
}

// ethernetEvents returns what takes the events of adapter i's Ethernet function: they are written by a goroutine, since whoever
// raises them drives the loop.
func (d *Driver) ethernetEvents(i int) func(ethernet.Event) {
	if d.raised == nil {
		d.raised, d.told = make(chan raisedEvent, mostEvents), make(chan struct{})
		go func() {
			defer close(d.told)
			for e := range d.raised {
				d.tellEthernet(e.adapter, e.Event)
			}
		}()
	}
	return func(e ethernet.Event) {
		select {
		case d.raised <- raisedEvent{i, e}:
		default:
		}
	}
}

// tellEthernet writes an event of an Ethernet function to the log. RSSOff is told with the adapter's start.
func (d *Driver) tellEthernet(i int, e ethernet.Event) {
	switch e.Kind {
	case ethernet.RSSOff:
		return
	case ethernet.DuplicateMAC:
		r := d.running[i]
		d.events.Raise(r.Generation, events.DuplicateMAC{Adapter: r.Name, MAC: e.MAC.String()})
		return
	case ethernet.ManyGroups:
		r := d.running[i]
		d.events.Raise(r.Generation, events.ManyGroups{Adapter: r.Name, Groups: e.Count, Limit: e.Limit})
		return
	case ethernet.SendTimeout: // because of a pause, or of others who have the wire: nothing is broken
		r, at := d.running[i], d.cfg.Slot(i)
		d.events.Raise(r.Generation, events.SendTimeout{Adapter: r.Name, Queue: e.Queue, Function: at.Port - 1})
		d.dumps.on(d, uint32(i), dump.SendCQStuck, fmt.Sprintf("txcq-stuck-%d", e.Queue))
		return
	case ethernet.ReceiveTimeout:
		d.healing.tell(finding{uint32(i), healing.ReceiveSoftware, uint32(e.Queue)})
		return
	case ethernet.Woken:
		d.tellWoken(i, e)
		return
	}
	d.log.Warn("Ethernet function", "adapter", d.running[i].Name, "event", strings.ToLower(e.Kind.String()), "mac", e.MAC.String(),
		"count", e.Count)
}

// ethernetWords returns the counters of the interface of adapter i's Ethernet function.
func (d *Driver) ethernetWords(i int, e *device.EthernetStatus) collector.Interface {
	w := collector.Interface{Name: d.running[i].Name, Ethernet: e}
	if e.Up {
		w.Speed = d.host.Speed(uint32(i))
	}
	return w
}

// ethernetStatus returns the status of adapter i's Ethernet function, nil if it has none.
func (d *Driver) ethernetStatus(i int, e *device.EthernetStatus) *api.EthernetStatus {
	if e == nil {
		return nil
	}
	w := d.ethernetWords(i, e)
	loop, refused := d.host.LoopProcessors()
	if refused != nil { // which is in the log
		loop = nil
	}
	return &api.EthernetStatus{Host: e.Host, Up: e.Up, Asleep: e.Asleep, MAC: net.HardwareAddr(e.MAC[:]).String(),
		MTU: e.MTU, Queues: len(e.Processors), Rings: rings(e), Loop: loop, Counters: w.Values(),
		Filter: filterStatus(e), VXLANOff: d.vxlanOff(i)}
}

// filterStatus returns which frames an Ethernet function passes on.
func filterStatus(e *device.EthernetStatus) api.FilterStatus {
	f, c := &e.Filter, &e.Config
	s := api.FilterStatus{PacketFilter: uint32(f.Mode), Directed: f.Mode&filter.Directed != 0, Multicast: f.Mode&filter.Multicast != 0,
		AllMulticast: f.Mode&filter.AllMulticast != 0, Broadcast: f.Mode&filter.Broadcast != 0, Promiscuous: f.Mode&filter.Promiscuous != 0,
		Groups: []string{}, MostGroups: c.MaxNumOfMCList, VLANs: f.VLANs, AnyVLAN: c.PromiscuousVlan != 0, Untagged: e.On && c.VlanID == 0,
		Flows: f.Flows, LongestFrame: c.JumboPacket}
	for _, g := range f.Groups {
		s.Groups = append(s.Groups, g.String())
	}
	return s
}

// rings returns the status of the receive queues of an Ethernet function.
func rings(e *device.EthernetStatus) []api.RingStatus {
	list := []api.RingStatus{}
	for q, p := range e.Processors {
		c := &e.Queues[q]
		list = append(list, api.RingStatus{
			Processor: p, ReceivedPackets: c.Receive.Packets, ReceivedBytes: c.Receive.Bytes, Dropped: c.Receive.NoBuffer,
			SentPackets: c.Send.Packets, SentBytes: c.Send.Bytes,
		})
	}
	return list
}
