package driver

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/sriov"
)

// virtualFunction is a virtual function at the port of an adapter.
type virtualFunction struct {
	decision
	byKeys bool // the keys have it
	// index is that of the device's function; live says that there is one: not while the adapter is disabled.
	index  uint32
	number int // at the port
	live   bool
	quota  *budget.Quota
	// refused are the requests for memory that were refused when somebody was told of them, who is told again at pagesDue.
	refused  uint64
	pagesDue clock.Time
	close    func()        // its socket; nil: it has none
	end      *functionHost // its host; nil: it has none
	ipoib    *ipoibPort    // its IPoIB interface; nil: it has none
}

// decision is what is decided about a virtual function.
type decision struct {
	cfg device.FunctionConfig
	// host is who uses its Ethernet function.
	host hostPlace
	// queues is how many receive queues its network interface is to have; 0: as many as the adapter's keys say.
	queues int
	alone  bool              // its programs are those of the network namespace that its interface is in, and no others
	group  string            // whose members' programs may attach, beside the driver's user; empty: nobody's
	given  map[string]string // the settings, as they were given by name; a change makes another one
}

// functions are the virtual ones, by their adapters and in the order in which they came to be. The holder of Driver.changes changes
// them, with mu, under which they are read.
type functions struct {
	mu   sync.Mutex
	list []*virtualFunction
}

func (s *functions) find(name string) *virtualFunction {
	for _, f := range s.list {
		if strings.EqualFold(f.cfg.Name, name) { // as the registry has it, where they are kept
			return f
		}
	}
	return nil
}

// isFunction reports whether a name is that of a virtual function.
func (d *Driver) isFunction(name string) bool {
	d.functions.mu.Lock()
	defer d.functions.mu.Unlock()
	return d.functions.find(name) != nil
}

func (s *functions) add(f *virtualFunction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, f)
	slices.SortStableFunc(s.list, func(a, b *virtualFunction) int { return int(a.cfg.Owner) - int(b.cfg.Owner) })
}

func (s *functions) remove(f *virtualFunction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(o *virtualFunction) bool { return o == f })
}

// of returns those of an adapter.
func (s *functions) of(owner uint32) (list []*virtualFunction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		if f.cfg.Owner == owner {
			list = append(list, f)
		}
	}
	return list
}

// close closes their sockets.
func (s *functions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		if f.close != nil {
			f.close()
			f.close = nil
		}
	}
}

// settle says what a virtual function is now.
func (s *functions) settle(f *virtualFunction, index uint32, number int, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.index, f.number, f.live = index, number, live
}

// decide says what is decided about a virtual function now.
func (s *functions) decide(f *virtualFunction, v decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.decision = v
}

// hosted says which host a virtual function has; nil: none.
func (s *functions) hosted(f *virtualFunction, end *functionHost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.end = end
}

// place returns at which adapter's port, and with which number, a virtual function is.
func (s *functions) place(name string) (owner uint32, number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.find(name)
	if f == nil || !f.live {
		return 0, 0, false
	}
	return f.cfg.Owner, f.number, true
}

// now returns the index of a virtual function for a program that attaches.
func (s *functions) now(f *virtualFunction) (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.live {
		return 0, command.Errorf(command.Removed, "the virtual function %q is disabled with its adapter", f.cfg.Name)
	}
	return f.index, nil
}

// startAllFunctions starts those that the keys have from the start.
func (d *Driver) startAllFunctions() error {
	d.changes.Lock()
	defer d.changes.Unlock()
	d.recallFunctions()
	for i := range d.running {
		if d.enabled(uint32(i)) {
			d.startFunctions(uint32(i))
		}
	}
	d.refusePassed()
	return nil
}

// startFunctions starts the virtual functions of an adapter that was enabled: as many as its keys have, and those that were created
// by command. The caller holds changes.
func (d *Driver) startFunctions(i uint32) {
	d.startSwitch(i)
	d.startQueues(i)
	d.startSubnet(i)
	d.monitor(i, d.functionWatch.now())
	g, pf := d.grants(int(i)), d.host.Overview().Adapters[i].MAC
	for n := range g.VFs {
		if name := d.functionName(i, n); d.functions.find(name) == nil {
			mac := functionMAC(pf, n)
			of := device.FunctionConfig{Owner: i, Name: name, MAC: mac, Addr: linkLocal(mac)}
			if d.infiniBand(int(i)) {
				of.Addr = netip.Prefix{}
			}
			f := &virtualFunction{byKeys: true, decision: decision{cfg: of}}
			if kept, ok := d.registry.Function(d.running[i].known(), name); ok && !kept.Created {
				d.recall(f, kept)
			}
			if d.infiniBand(int(i)) {
				d.identifyFabric(f, n)
			}
			d.functions.add(f)
		}
	}
	for _, f := range d.functions.of(i) {
		if f.live {
			continue
		}
		if err := d.startFunction(f); err != nil {
			d.log.Warn("a virtual function does not start", "function", f.cfg.Name, "cause", err)
		}
	}
	d.pruneHosts(i)
	d.startVLANs(int(i))
}

// stopFunctions stops the virtual functions of an adapter that is about to be disabled. Those that the keys have are forgotten: the
// keys may have others when it is enabled.
func (d *Driver) stopFunctions(i uint32) {
	d.stopVLANs(int(i))
	d.stopQueues(i)
	for _, f := range d.functions.of(i) {
		d.stopFunction(f)
		if f.byKeys {
			d.dropFunction(f)
		}
	}
}

// startFunction adds a virtual function to the device, and opens its socket.
func (d *Driver) startFunction(f *virtualFunction) error {
	defer d.settleQueues(f.cfg.Owner)
	cfg := f.cfg
	cfg.ByLID = d.infiniBand(int(cfg.Owner)) && d.byLID(cfg.Owner)
	var err error
	if cfg.Ethernet, err = d.hostFunction(f); err != nil || cfg.Ethernet == nil {
		d.releaseQueue(f)
	}
	if err != nil {
		return err
	}
	cfg.Virtual = d.ruled(f, cfg.Virtual)
	index, err := d.host.AddFunction(cfg)
	if err != nil {
		d.releaseQueue(f)
		return err
	}
	d.functions.settle(f, index, d.host.FunctionNumber(index), true)
	d.limitPages(f)
	err = d.startFunctionIPoIB(f)
	if err == nil && f.close == nil {
		err = d.serveFunction(f)
	}
	if err != nil {
		d.stopFunction(f)
		d.releaseQueue(f)
		return err
	}
	d.startFunctionVLANs(f)
	return nil
}

func (d *Driver) stopFunction(f *virtualFunction) {
	if !f.live {
		return
	}
	d.stopFunctionVLANs(f)
	d.stopFunctionIPoIB(f)
	d.functions.settle(f, f.index, f.number, false)
	d.functionWatch.forget(f.cfg.Owner, f.number)
	if err := d.host.RemoveFunction(f.index); err != nil {
		d.log.Warn("a virtual function does not end in order", "function", f.cfg.Name, "cause", err)
	}
}

// dropFunction forgets a virtual function that was stopped.
func (d *Driver) dropFunction(f *virtualFunction) {
	d.functions.remove(f)
	d.releaseQueue(f)
	d.settleQueues(f.cfg.Owner)
	if f.close != nil {
		f.close()
		f.close = nil
		d.dropFunctionContainer(f)
	}
	d.refusePassed()
}

// limitPages limits what the programs of a virtual function make the driver hold, by MaxFWPagesUsagePerVF (WinOF-2 24.4, VF Resource
// Control). The caller holds changes.
func (d *Driver) limitPages(f *virtualFunction) {
	pages, name := d.running[f.cfg.Owner].value("MaxFWPagesUsagePerVF"), fmt.Sprintf("the virtual function %q", f.cfg.Name)
	d.functions.mu.Lock()
	defer d.functions.mu.Unlock()
	if f.quota == nil {
		f.quota = budget.NewQuota(name, pages*pageSize, 0).By("MaxFWPagesUsagePerVF")
		return
	}
	if d.attach != nil {
		d.attach.Ledger().Limit(f.quota, budget.Memory, pages*pageSize)
	}
}

// grants returns what SR-IOV's configuration grants the port of adapter i. The caller holds changes.
func (d *Driver) grants(i int) sriov.Grant {
	at := d.cfg.Slot(i)
	ports := d.portsOf(at)
	r := d.running[ports[0]]
	v := sriov.Device{
		Generation: r.Generation, Enabled: r.effective["SRIOV_EN"] != 0, Total: uint32(r.effective["NUM_OF_VFS"]),
		Permit: r.value("PermitSriov") != 0, Mode: sriov.PortMode(r.value("SriovPortMode")),
		MaxVFPort: [2]uint32{uint32(r.value("MaxVFPort1")), uint32(r.value("MaxVFPort2"))},
	}
	if r.Generation == catalogue.MLX5 {
		v.Mode = sriov.Manual
	}
	own := 0
	for n, p := range ports {
		o := d.running[p]
		v.Ports = append(v.Ports, sriov.Port{Offered: o.value("*SRIOV") != 0, Allowed: uint32(o.value("*NumVFs")),
			InfiniBand: d.infiniBand(int(p)), Wire: d.noFunctions(int(p))})
		if d.infiniBand(int(p)) {
			v.Ports[n].Rows = uint32(d.mostFabric(p))
		}
		if int(p) == i {
			own = n
		}
	}
	return v.Grants()[own]
}

// noFunctions returns why the wire of adapter i has no room for virtual functions; empty: it has.
func (d *Driver) noFunctions(i int) string {
	if t, carries := d.Roster.Of(i); t != nil && !carries {
		return "the adapter's wire is in team " + strconv.Quote(t.Name) + ", whose virtual functions are those of the adapter that carries it"
	}
	if t := d.Roster.TeamOf(i); t != nil && t.IPoIB {
		return "the adapter is a member of team " + strconv.Quote(t.Name) + " of IPoIB interfaces, with which there are no virtual functions"
	}
	if a := &d.cfg.Adapters[i]; !a.WholeFrames() && !d.infiniBand(i) {
		return "the adapter's wire are UDP sockets, which have no room for other functions: wires of whole frames have"
	}
	return ""
}
