package vswitch

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/registry"
)

// functions are functions in memory. Settings other than rdma are noted only.
type functions struct {
	list []api.FunctionStatus
	did  []string
	fail error
}

func (f *functions) Functions() []api.FunctionStatus { return slices.Clone(f.list) }

func (f *functions) CreateFunction(q api.FunctionRequest) (api.FunctionStatus, error) {
	if f.fail != nil {
		return api.FunctionStatus{}, f.fail
	}
	f.did = append(f.did, fmt.Sprint("create ", q.Adapter, " ", q.Name, " ", q.Settings))
	v := api.FunctionStatus{Name: q.Name, Adapter: q.Adapter, NoRDMA: slices.Contains(q.Settings, "rdma=off")}
	f.list = append(f.list, v)
	return v, nil
}

func (f *functions) SetFunction(q api.FunctionRequest) error {
	if f.fail != nil {
		return f.fail
	}
	f.did = append(f.did, fmt.Sprint("set ", q.Name, " ", q.Settings)+map[bool]string{true: " anew"}[q.Anew])
	for i := range f.list {
		if f.list[i].Name == q.Name {
			f.list[i].NoRDMA = slices.Contains(q.Settings, "rdma=off") || f.list[i].NoRDMA && !slices.Contains(q.Settings, "rdma=on")
		}
	}
	return nil
}

func (f *functions) RemoveFunction(name string) error {
	f.did = append(f.did, "remove "+name)
	f.list = slices.DeleteFunc(f.list, func(v api.FunctionStatus) bool { return v.Name == name })
	return nil
}

func (f *functions) FollowSwitch(name string, anew bool) error {
	if f.fail != nil {
		return f.fail
	}
	f.did = append(f.did, "follow "+name+map[bool]string{true: " anew"}[anew])
	return nil
}

// house is a driver with the adapters a and b, a wire named wire, and a registry in memory.
type house struct {
	*Switches
	f   *functions
	reg *registry.Registry
	vmq []string // what followed about queues
}

func newHouse() *house {
	h := &house{f: &functions{}, reg: registry.NewVolatile("a test")}
	h.open()
	return h
}

// open makes the switches anew of what is kept.
func (h *house) open() {
	has := func(name string) bool { return name == "a" || name == "b" }
	h.Switches = New(Config{Functions: h.f, Registry: h.reg, Has: has, Log: slog.New(slog.DiscardHandler),
		PacketDirect: func(name string) error {
			if name == "b" {
				return api.Wrong("packetdirect", "on over b", "off")
			}
			return nil
		},
		Taken:   func(name string) bool { return strings.EqualFold(name, "wire") },
		Over:    func(adapter string, offer bool) { h.vmq = append(h.vmq, fmt.Sprint(adapter, " ", offer)) },
		Reweigh: func(function string) { h.vmq = append(h.vmq, fmt.Sprint(function, " ", h.VMQWeight(function))) },
		Place: func(name string) (string, error) {
			if !has(name) {
				return "", api.Wrong("adapter", name, "a, b")
			}
			return name, nil
		}})
}

// does runs steps, and returns what they did of functions.
func (h *house) does(t *testing.T, steps ...error) string {
	t.Helper()
	for _, err := range steps {
		if err != nil {
			t.Error(err)
		}
	}
	did := strings.Join(h.f.did, "; ")
	h.f.did = nil
	return did
}

func (h *house) create(name, adapter string, iov bool) error {
	_, err := h.CreateVirtualSwitch(api.SwitchRequest{Name: name, Adapter: adapter, IOV: iov})
	return err
}

func (h *house) add(name, function string, settings ...string) error {
	_, err := h.AddSwitchAdapter(api.SwitchAdapterRequest{Switch: name, Function: function, Settings: settings})
	return err
}

func (h *house) set(name, function string, settings ...string) error {
	return h.SetSwitchAdapter(api.SwitchAdapterRequest{Switch: name, Function: function, Settings: settings})
}

// text says what there is.
func (h *house) text() string {
	var b strings.Builder
	for _, v := range h.VirtualSwitches() {
		fmt.Fprintf(&b, "%s/%s iov=%t:", v.Name, v.Adapter, v.IOV)
		for _, a := range v.Adapters {
			fmt.Fprintf(&b, " %s(%s,%s,%d,%t)", a.Function, a.Name, a.Machine, a.IOVWeight, a.RDMA)
		}
		b.WriteString("; ")
	}
	return b.String()
}

// TestAdapters: adapters of a switch are functions at its adapter's port, with RDMA if they are the host's and it is on, or a machine's
// and a virtual function (WinOF-2 24.4, Configuring Guest RDMA); settings that are not theirs are the function's; all of it is there again
// after a start, and goes with the switch.
func TestAdapters(t *testing.T) {
	h := newHouse()
	did := h.does(t, h.create("s", "a", true), h.add("s", "host", "vlan=7"), h.add("S", "vm", "machine=red", "name=Network Adapter", "max=100"),
		h.add("s", "plain", "machine=blue", "iov=0"))
	const made = "create a host [vlan=7 rdma=on]; create a vm [max=100 rdma=on]; create a plain [rdma=off]"
	if did != made {
		t.Errorf("did %s", did)
	}
	did = h.does(t, h.set("s", "VM", "iov=0"), h.set("s", "vm", "iov=100", "rdma=off"), h.set("s", "vm", "rdma=on", "min=5"),
		h.set("s", "host", "rdma=off"), h.set("s", "vm", "name=other"), h.set("s", "plain", "rdma=on"))
	if did != "set vm [rdma=off] anew; set vm [queues=0] anew; set vm [min=5 rdma=on]; set host [rdma=off]" {
		t.Errorf("did %s", did)
	}
	const there = "s/a iov=true: host(host,,0,false) vm(other,red,100,true) plain(plain,blue,0,false); "
	if got := h.text(); got != there {
		t.Errorf("there is %s", got)
	}
	h.open()
	h.open()
	if got := h.text(); got != "s/a iov=true: host(host,,0,false) plain(plain,blue,0,false) vm(other,red,100,true); " {
		t.Errorf("after a start there is %s", got)
	}
	if did := h.does(t, h.RemoveSwitchAdapter("s", "plain"), h.RemoveVirtualSwitch("S")); did != "remove plain; remove host; remove vm" {
		t.Errorf("did %s", did)
	}
	if h.open(); h.text() != "" {
		t.Errorf("after all is removed there is %s", h.text())
	}
}

// TestRefused: what cannot be is refused with the field's name, and nothing has changed, in the registry either.
func TestRefused(t *testing.T) {
	h := newHouse()
	h.does(t, h.create("s", "a", false), h.add("s", "red"))
	for field, err := range map[string]error{
		"adapter is":         h.create("t", "c", false),
		"adapter is \"a\",":  h.create("t", "a", false),
		"name is \"S\"":      h.create("S", "b", false),
		"name is \"WIRE\"":   h.create("WIRE", "b", false),
		"name is \"\"":       h.create("", "b", false),
		`name is "x\\y"`:     h.create(`x\y`, "b", false),
		"name is \" x\"":     h.create(" x", "b", false),
		"name is \"Red\"":    h.add("s", "Red"),
		"virtual switch is":  h.add("t", "blue"),
		"machine is":         h.add("s", "blue", "machine=\x01"),
		"iov is \"101\"":     h.add("s", "blue", "iov=101"),
		"iov is 1;":          h.add("s", "blue", "iov=1", "machine=x"),
		"iov is \"-1\"":      h.add("s", "blue", "iov=-1"),
		"queues is":          h.add("s", "blue", "queues=65"),
		"vmq is \"101\"":     h.add("s", "blue", "vmq=101"),
		"vmq is \"x\"":       h.set("s", "red", "vmq=x"),
		"vmmq is":            h.add("s", "blue", "vmmq=1"),
		"rdma is":            h.set("s", "red", "rdma=yes"),
		"setting is \"vlan":  h.set("s", "red", "vlan"),
		"setting is \"iov=0": h.set("s", "red", "iov=0", "iov=0"),
		"settings is empty":  h.set("s", "red"),
		"network adapter is": h.set("s", "blue", "rdma=on"),
		`"red"`:              h.RemoveSwitchAdapter("s", "blue"),
	} {
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	h.f.fail = errors.New("no")
	if h.add("s", "blue") == nil || h.set("s", "red", "name=other", "rdma=off") == nil {
		t.Error("a failure is not told")
	}
	const want = "s/a iov=false: red(red,,0,true); "
	if got := h.text(); got != want {
		t.Errorf("there is %s", got)
	}
	if h.open(); h.text() != want || len(h.reg.VirtualSwitches()[0].Adapters) != 1 {
		t.Errorf("after a start there is %s, of %+v", h.text(), h.reg.VirtualSwitches())
	}
}

// TestRemovedElsewhere: an adapter whose function somebody else has removed is not shown, and is forgotten with the next change; one whose
// switch is over an adapter that is gone stays for when that comes back.
func TestRemovedElsewhere(t *testing.T) {
	h := newHouse()
	h.does(t, h.create("s", "a", false), h.add("s", "red"), h.add("s", "blue"), h.f.RemoveFunction("red"))
	if got := h.text(); got != "s/a iov=false: blue(blue,,0,true); " {
		t.Errorf("there is %s", got)
	}
	if did := h.does(t, h.add("s", "red", "vlan=1")); did != "create a red [vlan=1 rdma=on]" {
		t.Errorf("did %s", did)
	}
	h.cfg.Has = func(string) bool { return false }
	list := h.f.list
	h.f.list = nil
	if err := h.set("s", "red", "name=other"); err != nil {
		t.Error(err)
	}
	if v := h.VirtualSwitches(); len(v) != 1 || !v[0].Missing || len(v[0].Adapters) != 0 {
		t.Errorf("without its adapter: %+v", v)
	}
	h.f.list = list
	if h.open(); len(h.VirtualSwitches()[0].Adapters) != 2 {
		t.Errorf("with it again: %+v", h.VirtualSwitches())
	}
}

// TestFollow: switches and adapters of the configuration are made and changed as it says, beside those of commands, which cannot remove
// them; those that it has no more go, and what is made by command stays.
func TestFollow(t *testing.T) {
	h := newHouse()
	h.does(t, h.create("mine", "b", false))
	one := config.VirtualSwitch{Name: "s", Adapter: "a", IOV: true, Adapters: []config.SwitchAdapter{
		{Function: "red", Settings: []string{"machine=vm"}}, {Function: "blue"}}}
	if did := h.does(t, h.Follow([]config.VirtualSwitch{one})); did != "create a red [rdma=on]; create a blue [rdma=on]" {
		t.Errorf("did %s", did)
	}
	if h.RemoveVirtualSwitch("s") == nil || h.RemoveSwitchAdapter("s", "red") == nil {
		t.Error("a command removes what the configuration has")
	}
	h.does(t, h.add("s", "added"))
	h.open()
	one.IOV, one.Adapters = false, []config.SwitchAdapter{{Function: "Red", Settings: []string{"max=5"}}}
	if did := h.does(t, h.Follow([]config.VirtualSwitch{one})); did != "remove blue; set red [max=5 rdma=off] anew" {
		t.Errorf("did %s", did)
	}
	if got := h.text(); got != "mine/b iov=false:; s/a iov=false: added(added,,0,true) red(red,vm,0,false); " {
		t.Errorf("there is %s", got)
	}
	if err := h.Follow([]config.VirtualSwitch{{Name: "mine", Adapter: "a"}}); err == nil ||
		!strings.Contains(err.Error(), `virtual_switches[0]: adapter is "a"; allowed: "b"`) {
		t.Errorf("another adapter: %v", err)
	}
	h.open()
	if h.does(t, h.Follow(nil)); h.text() != "mine/b iov=false:; " {
		t.Errorf("there is %s", h.text())
	}
}

// TestQueues: a virtual function asks for the queues that it is given, a virtual port for those if VMMQ is on, else for one; one that
// becomes the other is made anew.
func TestQueues(t *testing.T) {
	h := newHouse()
	did := h.does(t, h.create("s", "a", true), h.add("s", "host", "queues=4"), h.add("s", "vm", "machine=red", "vmmq=off"),
		h.add("s", "port", "machine=red", "iov=0", "vmmq=off", "queues=8"))
	if did != "create a host [rdma=on queues=4]; create a vm [rdma=on]; create a port [rdma=off queues=1]" {
		t.Errorf("did %s", did)
	}
	if !h.VirtualPort("HOST") || h.VirtualPort("vm") || !h.VirtualPort("port") || h.VirtualPort("none") {
		t.Error("virtual ports are other ones")
	}
	did = h.does(t, h.set("s", "host", "vmmq=off"), h.set("s", "vm", "queues=2"), h.set("s", "port", "vmmq=on"), h.set("s", "vm", "rdma=off"),
		h.set("s", "vm", "iov=0"), h.set("s", "vm", "vmmq=on", "iov=100"))
	if did != "set host [queues=1]; set vm [queues=2]; set port [queues=8]; set vm [rdma=off]; set vm [queues=1] anew; set vm [queues=2] anew" {
		t.Errorf("did %s", did)
	}
	if h.open(); !h.VirtualPort("port") || h.VirtualPort("vm") {
		t.Error("after a start virtual ports are other ones")
	}
}

// TestVMQ: a switch without SR-IOV has its adapter offer VMQ while it is there; an adapter of it has weight 100 until it is given another
// one, which is kept and told, and does not make it another function.
func TestVMQ(t *testing.T) {
	h := newHouse()
	h.does(t, h.create("s", "a", false), h.create("v", "b", true), h.add("s", "port"), h.add("s", "light", "vmq=0"))
	if h.VMQWeight("PORT") != 100 || h.VMQWeight("light") != 0 || h.VMQWeight("none") != 0 || h.SRIOV("a") || !h.SRIOV("b") {
		t.Errorf("weights %d and %d, SR-IOV %t and %t", h.VMQWeight("port"), h.VMQWeight("light"), h.SRIOV("a"), h.SRIOV("b"))
	}
	if did := h.does(t, h.set("s", "port", "vmq=7"), h.set("s", "port", "vmq=7")); did != "" {
		t.Errorf("did %s", did)
	}
	if h.open(); h.VMQWeight("port") != 7 || h.VMQWeight("light") != 0 {
		t.Errorf("after a start the weights are %d and %d", h.VMQWeight("port"), h.VMQWeight("light"))
	}
	h.does(t, h.RemoveVirtualSwitch("s"), h.RemoveVirtualSwitch("v"))
	if got := strings.Join(h.vmq, ", "); got != "a true, b false, port 7, a false, b false" {
		t.Errorf("told %s", got)
	}
}
