package driver

import (
	"slices"
	"sync"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/queue"
	"github.com/softvpi/softvpi/internal/vport"
)

// machineQueues are the receive queues of physical functions, by adapter, that virtual ports have (VMQ; WinOF 5.50, 4.5.1). The holder of
// Driver.changes changes them, with mu, under which they are read.
type machineQueues struct {
	mu sync.Mutex
	of map[uint32]*adapterQueues
}

// adapterQueues are those of an adapter that is enabled.
type adapterQueues struct {
	*vport.Queues
	standard *queue.Pool // the default queue
	ports    map[string]*portQueue
}

// portQueue is the queue by which a virtual port gets its frames now.
type portQueue struct {
	number    int // 0: the default one
	weight    int
	lookahead bool
	pool      *queue.Pool
}

// offersVMQ reports whether adapter i offers VMQ in place of RSS: *RssOrVmqPreference says which of the two, and a virtual switch without
// SR-IOV over the adapter sets that (WinOF 5.50, 4.6.6.2 and 6.6). The caller holds changes or settings.
func (d *Driver) offersVMQ(i uint32) bool {
	r := d.running[i]
	return r.value("*VMQ") != 0 && r.value("*RssOrVmqPreference") != 0
}

// queueConfig is what the keys of adapter i say about queues. Below a switch with SR-IOV virtual ports are those of the adapter's own
// switch, which have queues whatever is offered to hosts (WinOF 5.50, 4.5.4: "regardless of whether the NIC is operating in SR-IOV or VMQ
// mode"). The caller holds changes.
func (d *Driver) queueConfig(i uint32) vport.Config {
	r := d.running[i]
	iov := d.Switches.SRIOV(r.Name)
	c := vport.Config{VMQ: iov || r.value("*VMQ") != 0, PreferVMQ: iov || d.offersVMQ(i), VLANFiltering: r.value("*VMQVlanFiltering") != 0,
		Queues: vport.Most, MACs: vport.Most, VLANs: vport.Most}
	if r.Generation == catalogue.MLX4 { // the other one has no such keys
		c.Queues, c.MACs, c.VLANs = int(r.value("MaxNumVmqs")), int(r.value("MaxNumMacAddrFilters")), int(r.value("MaxNumVlanFilters"))
	}
	return c
}

// startQueues begins anew with the queues of an adapter that was enabled. The caller holds changes.
func (d *Driver) startQueues(i uint32) {
	q, err := vport.New(d.queueConfig(i))
	if err != nil { // which the registry does not allow
		d.log.Warn("virtual ports have no queues of their own", "adapter", d.running[i].Name, "cause", err)
		q, _ = vport.New(vport.Config{Queues: 1, MACs: 1, VLANs: 1})
	}
	buffers := d.ethernetConfig(int(i)).ReceiveBuffers
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	if d.queues.of == nil {
		d.queues.of = map[uint32]*adapterQueues{}
	}
	d.queues.of[i] = &adapterQueues{q, queue.NewPool(buffers), map[string]*portQueue{}}
}

// stopQueues forgets the queues of an adapter that is about to be disabled. The caller holds changes.
func (d *Driver) stopQueues(i uint32) {
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	delete(d.queues.of, i)
}

// claimQueue gives a virtual port the queue by which it gets its frames. The caller holds changes.
func (d *Driver) claimQueue(f *virtualFunction) *ethernet.VirtualQueue {
	name := f.cfg.Name
	set := vport.Port{Weight: d.Switches.VMQWeight(name), MAC: f.cfg.MAC}
	set.VLANs, set.AnyVLAN = vlansOf(f)
	r := d.running[f.cfg.Owner]
	split := r.Generation == catalogue.MLX4 && r.value("*VMQLookaheadSplit") != 0
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	q := d.queues.of[f.cfg.Owner]
	if q == nil {
		return nil
	}
	if err := q.Set(name, set); err != nil {
		d.log.Warn("a virtual port has no queue", "function", name, "cause", err)
		return nil
	}
	n, _, _ := q.Queue(name)
	p := q.ports[name]
	if p == nil || p.number != n {
		p = &portQueue{number: n, pool: q.standard, lookahead: split && n != 0}
		if n != 0 {
			p.pool = queue.NewPool(0)
		}
		q.ports[name] = p
	}
	p.weight = set.Weight
	return &ethernet.VirtualQueue{Number: n, Pool: p.pool, Lookahead: p.lookahead}
}

// vlansOf returns the VLANs of a function's frames on the wire, 0 for those without a tag.
func vlansOf(f *virtualFunction) (list []uint16, all bool) {
	if f.cfg.VLAN != 0 {
		return []uint16{f.cfg.VLAN}, false
	}
	v := f.cfg.Virtual.VLANs
	if v == bridge.AllVLANs() {
		return nil, true
	}
	list = []uint16{0}
	for id := uint16(1); id <= bridge.LastVLAN; id++ {
		if v.Has(id) {
			list = append(list, id)
		}
	}
	return list, false
}

// releaseQueue takes a function's queue back, if it has one. The caller holds changes, and settles the others.
func (d *Driver) releaseQueue(f *virtualFunction) {
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	if q := d.queues.of[f.cfg.Owner]; q != nil && q.ports[f.cfg.Name] != nil {
		q.Remove(f.cfg.Name)
		delete(q.ports, f.cfg.Name)
	}
}

// settleQueues moves the virtual ports of an adapter to the queues that they have now: one may have become free. The caller holds
// changes.
func (d *Driver) settleQueues(i uint32) {
	for _, f := range d.functions.of(i) {
		if !f.live || !d.moves(f) {
			continue
		}
		if err := d.host.RenewEthernet(f.index, d.functionEthernet(f)); err != nil {
			d.log.Warn("a virtual port does not move to another queue", "function", f.cfg.Name, "cause", err)
		}
	}
}

// moves reports whether a virtual port has another queue than its function works with.
func (d *Driver) moves(f *virtualFunction) bool {
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	q := d.queues.of[f.cfg.Owner]
	if q == nil || q.ports[f.cfg.Name] == nil {
		return false
	}
	n, _, ok := q.Queue(f.cfg.Name)
	return ok && n != q.ports[f.cfg.Name].number
}

// reclaimQueue decides anew about the queue of a virtual port whose filters or weight have changed. The caller holds changes.
func (d *Driver) reclaimQueue(f *virtualFunction) {
	d.queues.mu.Lock()
	q := d.queues.of[f.cfg.Owner]
	var before *portQueue
	if q != nil {
		before = q.ports[f.cfg.Name]
	}
	d.queues.mu.Unlock()
	if before == nil || !f.live {
		return
	}
	if c := d.functionEthernet(f); c.Virtual != nil && c.Virtual.Pool != before.pool {
		if err := d.host.RenewEthernet(f.index, c); err != nil {
			d.log.Warn("a virtual port does not move to another queue", "function", f.cfg.Name, "cause", err)
		}
	}
	d.settleQueues(f.cfg.Owner)
}

// reweigh follows the VmqWeight of a virtual switch's adapter.
func (d *Driver) reweigh(function string) {
	d.changes.Lock()
	defer d.changes.Unlock()
	if f := d.functions.find(function); f != nil {
		d.reclaimQueue(f)
	}
}

// requeue decides anew about all queues of an adapter, since its keys or the switch over it have changed. The caller holds changes.
func (d *Driver) requeue(i uint32) {
	d.queues.mu.Lock()
	q := d.queues.of[i]
	d.queues.mu.Unlock()
	if q == nil || q.Config() == d.queueConfig(i) {
		return
	}
	d.startQueues(i)
	for _, f := range d.functions.of(i) {
		if _, had := q.ports[f.cfg.Name]; !had || !f.live {
			continue
		}
		if err := d.host.RenewEthernet(f.index, d.functionEthernet(f)); err != nil {
			d.log.Warn("a virtual port does not move to another queue", "function", f.cfg.Name, "cause", err)
		}
	}
}

// switchOver follows a virtual switch over an adapter that has come or gone: one without SR-IOV has the adapter offer VMQ (WinOF 5.50,
// 6.6: *RssOrVmqPreference "is controlled by the virtual switch").
func (d *Driver) switchOver(adapter string, offer bool) {
	i, err := d.find(adapter)
	if err != nil {
		return // the configuration has it no more
	}
	var value *string
	if offer {
		one := "1"
		value = &one
	}
	if _, err := d.Set(adapter, "*RssOrVmqPreference", value); err != nil {
		d.log.Warn("the adapter does not offer what its virtual switch asks for", "adapter", adapter, "cause", err)
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	d.requeue(i)
}

// queueStatus returns the queue of a virtual port; nil: the function is none, or has no network interface.
func (d *Driver) queueStatus(i uint32, function string) *api.QueueStatus {
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	q := d.queues.of[i]
	if q == nil || q.ports[function] == nil {
		return nil
	}
	p := q.ports[function]
	_, why, _ := q.Queue(function)
	s := &api.QueueStatus{Number: p.number, Why: string(why), Weight: p.weight, LookaheadSplit: p.lookahead, Filters: []api.QueueFilter{}}
	if p.number != 0 {
		s.QueueCounters = queueCounters(p.pool)
	}
	for _, f := range q.Filters(function) {
		s.Filters = append(s.Filters, api.QueueFilter{MAC: f.MAC.String(), VLAN: f.VLAN, AnyVLAN: f.AnyVLAN})
	}
	return s
}

func queueCounters(p *queue.Pool) api.QueueCounters {
	c := p.Counters()
	return api.QueueCounters{Packets: c.Packets, Bytes: c.Bytes, Dropped: c.Dropped, Split: c.Split}
}

// vmqStatus returns what adapter i offers of VMQ; nil: it has nothing to do with it. The caller holds changes.
func (d *Driver) vmqStatus(i uint32) *api.VMQStatus {
	if d.infiniBand(int(i)) || d.noFunctions(int(i)) != "" {
		return nil
	}
	c := d.queueConfig(i)
	s := &api.VMQStatus{Enabled: d.running[i].value("*VMQ") != 0, Offers: "RSS", VLANFiltering: c.VLANFiltering, Queues: c.Queues, MACs: c.MACs,
		VLANs: c.VLANs, Sharing: []string{}}
	if d.offersVMQ(i) {
		s.Offers = "VMQ"
	}
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	q := d.queues.of[i]
	if q == nil {
		return s
	}
	s.UsedQueues, s.UsedMACs, s.UsedVLANs = q.Used()
	s.Default = queueCounters(q.standard)
	for name, p := range q.ports {
		if p.number == 0 {
			s.Sharing = append(s.Sharing, name)
		}
	}
	slices.Sort(s.Sharing)
	return s
}

// ownEthernet is how the Ethernet function of adapter i itself works. An adapter that offers VMQ in place of RSS spreads its own frames
// only as those of a virtual port: over several queues if *RssOnHostVPorts allows (WinOF-2 24.4: VMMQ "extends the native RSS feature to
// the VPorts that are associated with the physical function (PF) of a NIC including the default VPort").
func (d *Driver) ownEthernet(i int) ethernet.Config {
	c := d.ethernetConfig(i)
	if d.offersVMQ(uint32(i)) && d.running[i].value("*RssOnHostVPorts") == 0 {
		c.NumRSSQueues = 1
	}
	return c
}

// followOffer has the Ethernet function of adapter i itself begin anew if it works with another number of queues than it offers. The
// caller holds changes.
func (d *Driver) followOffer(i int) {
	e := d.host.Ethernet(uint32(i))
	c := d.ownEthernet(i)
	if d.cfg.Adapters[i].Host == "" || e == nil || !e.On || e.Config.NumRSSQueues == c.NumRSSQueues {
		return
	}
	if err := d.host.RenewEthernet(uint32(i), c); err != nil {
		d.log.Warn("the Ethernet function does not offer what its keys say", "adapter", d.running[i].Name, "cause", err)
	}
}
