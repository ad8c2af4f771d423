package cmdlets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/subnets"
	"github.com/softvpi/softvpi/internal/driver/vswitch"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/registry"
)

// fake is a driver in memory that records what is changed. Its registry, keys and settings of priorities are real.
type fake struct {
	reg      *registry.Registry
	adapters []api.AdapterStatus
	words    map[string]map[string]string // settings of priorities by adapter
	net      *fakeNet
	switches *vswitch.Switches // real, too
	subnets  *subnets.Subnets  // likewise
	did      []string
	asked    []string
}

// fakeNet is network interfaces in memory.
type fakeNet struct {
	f         *fake
	addresses map[string][]netip.Prefix
	routes    map[string][]Route
}

func (n *fakeNet) Addresses(i string) ([]netip.Prefix, error) { return n.addresses[i], nil }

func (n *fakeNet) AddAddress(i string, p netip.Prefix) error {
	n.f.record("%s: address %v", i, p)
	n.addresses[i] = append(n.addresses[i], p)
	return nil
}

func (n *fakeNet) RemoveAddress(i string, p netip.Prefix) error {
	n.f.record("%s: no address %v", i, p)
	n.addresses[i] = slices.DeleteFunc(slices.Clone(n.addresses[i]), func(x netip.Prefix) bool { return x == p })
	return nil
}

func (n *fakeNet) Routes(i string) ([]Route, error) { return n.routes[i], nil }

func (n *fakeNet) AddRoute(i string, x Route) error {
	n.f.record("%s: route %v by %v", i, x.To, x.By)
	n.routes[i] = append(n.routes[i], x)
	return nil
}

func (n *fakeNet) RemoveRoute(i string, x Route) error {
	n.f.record("%s: no route %v by %v", i, x.To, x.By)
	n.routes[i] = slices.DeleteFunc(slices.Clone(n.routes[i]), func(y Route) bool { return y == x })
	return nil
}

// newFake returns a driver with adapters of these names.
func newFake(t testing.TB, names ...string) *fake { return newFakeOf(t, catalogue.MLX5, names...) }

func newFakeOf(t testing.TB, g catalogue.Generation, names ...string) *fake {
	t.Helper()
	f := &fake{reg: registry.NewVolatile("a test"), words: map[string]map[string]string{}}
	f.net = &fakeNet{f, map[string][]netip.Prefix{}, map[string][]Route{}}
	for i, n := range names {
		id, err := f.reg.AddAdapter(n, g)
		if err != nil {
			t.Fatal(err)
		}
		f.words[n] = map[string]string{}
		f.net.addresses[fmt.Sprintf("nic%d", i)] = []netip.Prefix{netip.MustParsePrefix("10.0.0.9/24")}
		f.adapters = append(f.adapters, api.AdapterStatus{Index: uint32(i), Name: n, Generation: api.GenerationName(g), Number: id.Number,
			DeviceNumber: id.DeviceNumber,
			Enabled:      true, Up: true, Speed: 1e10, Duplex: "full", MAC: fmt.Sprintf("02:00:00:00:00:%02x", i+1), LinkMTU: 1500, Wire: "UDP sockets",
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})}, Device: n, Port: 1, Ports: 1,
			SRIOV:    &api.SRIOVStatus{Support: "Unknown", Cause: "SRIOV_EN is 0"},
			Ethernet: &api.EthernetStatus{Host: fmt.Sprintf("TAP nic%d", i), Up: true}})
	}
	f.switches = vswitch.New(vswitch.Config{Functions: quietly{f}, Registry: f.reg, Log: slog.New(slog.DiscardHandler),
		Place: func(name string) (string, error) { return name, nil }, Taken: func(string) bool { return false },
		Has:          func(name string) bool { return slices.Contains(names, name) },
		PacketDirect: f.framesAt, Over: func(string, bool) {}, Reweigh: func(string) {}})
	f.subnets = subnets.New(subnets.Config{Registry: f.reg, Log: slog.New(slog.DiscardHandler), Follow: func() error { return nil },
		Place: func(name string) (string, error) { return name, nil }})
	return f
}

// quietly is the driver as its virtual switches see it: what they do is recorded as what they are asked for.
type quietly struct{ f *fake }

func (q quietly) Functions() (list []api.FunctionStatus) {
	for _, a := range q.f.adapters {
		list = append(list, a.Functions...)
	}
	return list
}

func (q quietly) unheard(do func()) {
	did := q.f.did
	do()
	q.f.did = did
}

func (q quietly) CreateFunction(r api.FunctionRequest) (v api.FunctionStatus, err error) {
	q.unheard(func() { v, err = q.f.CreateFunction(context.Background(), r) })
	return v, err
}

func (q quietly) SetFunction(r api.FunctionRequest) (err error) {
	q.unheard(func() { err = q.f.SetFunction(context.Background(), r) })
	return err
}

func (q quietly) RemoveFunction(name string) (err error) {
	q.unheard(func() { err = q.f.RemoveFunction(context.Background(), name) })
	return err
}

// FollowSwitch is about what only a driver has.
func (q quietly) FollowSwitch(string, bool) error { return nil }

// framesAt is the rule of *PacketDirect.
func (f *fake) framesAt(adapter string) error {
	list, err := f.Settings(context.Background(), adapter)
	if i := slices.IndexFunc(list, func(s api.Setting) bool { return s.Name == "*PacketDirect" }); err == nil && i >= 0 && list[i].Value == "0" {
		err = api.Wrong("packetdirect", "on over "+adapter, "off")
	}
	return err
}

func (f *fake) CreateVirtualSwitch(_ context.Context, q api.SwitchRequest) (api.VirtualSwitch, error) {
	f.record("%s: virtual switch %s%s", q.Adapter, q.Name, map[bool]string{true: " with SR-IOV"}[q.IOV]+map[bool]string{true: " with PacketDirect"}[q.PacketDirect])
	return f.switches.CreateVirtualSwitch(q)
}

func (f *fake) SetVirtualSwitch(_ context.Context, q api.SwitchSettings) error {
	err := f.switches.SetVirtualSwitch(q)
	if err == nil {
		f.record("virtual switch %s: %s", q.Switch, strings.Join(q.Settings, " "))
	}
	return err
}

func (f *fake) RemoveVirtualSwitch(_ context.Context, name string) error {
	f.record("no virtual switch %s", name)
	return f.switches.RemoveVirtualSwitch(name)
}

func (f *fake) AddSwitchAdapter(_ context.Context, q api.SwitchAdapterRequest) (api.SwitchAdapter, error) {
	f.record("%s: adapter %s (%s)", q.Switch, q.Function, strings.Join(q.Settings, ", "))
	return f.switches.AddSwitchAdapter(q)
}

func (f *fake) SetSwitchAdapter(_ context.Context, q api.SwitchAdapterRequest) error {
	err := f.switches.SetSwitchAdapter(q)
	if err == nil {
		f.record("%s: adapter %s: %s", q.Switch, q.Function, strings.Join(q.Settings, " "))
	}
	return err
}

func (f *fake) RemoveSwitchAdapter(_ context.Context, name, function string) error {
	f.record("%s: no adapter %s", name, function)
	return f.switches.RemoveSwitchAdapter(name, function)
}

func (f *fake) Overlay(context.Context) (api.Overlay, error) {
	return api.Overlay{Entries: f.subnets.Entries()}, nil
}

func (f *fake) AddOverlayEntry(_ context.Context, q api.OverlayRequest) (api.OverlayEntry, error) {
	e, err := f.subnets.AddOverlayEntry(q)
	if err == nil {
		f.record("overlay %s %s", q.Kind, strings.Join(e.Words(), " "))
	}
	return e, err
}

func (f *fake) RemoveOverlayEntries(_ context.Context, q api.OverlayRequest) ([]api.OverlayEntry, error) {
	f.record("no overlay %s %s", q.Kind, strings.Join(q.Settings, " "))
	return f.subnets.RemoveOverlayEntries(q)
}

func (f *fake) record(format string, args ...any) {
	f.did = append(f.did, fmt.Sprintf(format, args...))
}

func (f *fake) Status(context.Context) (*api.Status, error) {
	st := &api.Status{Adapters: slices.Clone(f.adapters), VirtualSwitches: f.switches.VirtualSwitches()}
	for i := range st.Adapters {
		st.Adapters[i].QoS = f.qos(st.Adapters[i].Name)
	}
	return st, nil
}

func (f *fake) qos(name string) *api.QoSStatus {
	w := f.words[name]
	word := func(n, byDefault string) string {
		if v, ok := w[n]; ok {
			return v
		}
		return byDefault
	}
	q := &api.QoSStatus{Own: api.OwnQoS{Willing: word("willing", "on") == "on", PFC: word("pfc", "none"), PrioTC: word("prio-tc", "none"),
		TCBandwidth: word("tc-bw", "0:100"), Applications: "none"}}
	q.Operative = api.OperativeQoS{PFC: q.Own.PFC, PrioTC: q.Own.PrioTC, TCBandwidth: q.Own.TCBandwidth}
	for _, n := range sortedKeys(w) {
		if p, ok := strings.CutPrefix(n, "policy:"); ok {
			q.Policies = append(q.Policies, api.QoSPolicy{Name: p, Policy: w[n]})
		}
	}
	return q
}

func (f *fake) SetQoS(_ context.Context, q api.QoSRequest) error {
	next := map[string]string{}
	for k, v := range f.words[q.Adapter] {
		next[k] = v
	}
	for _, s := range q.Settings {
		name, value, _ := strings.Cut(s, "=")
		if next[name] = value; value == "default" {
			delete(next, name)
		}
		if p, ok := strings.CutPrefix(name, "policy:"); ok && value != "default" {
			if _, err := qos.ParsePolicy(p, value); err != nil {
				return err
			}
		}
	}
	tc, bw := next["prio-tc"], next["tc-bw"]
	if tc != "" {
		if _, err := qos.ParseClasses(tc, bw); err != nil {
			return err
		}
	}
	f.words[q.Adapter] = next
	f.record("%s: %s", q.Adapter, strings.Join(q.Settings, " "))
	return nil
}

func (f *fake) SetAdapter(_ context.Context, q api.AdapterRequest) error {
	f.record("%s: %s", q.Adapter, map[bool]string{true: "enable", false: "disable"}[q.Enable])
	for i := range f.adapters {
		if f.adapters[i].Name == q.Adapter {
			f.adapters[i].Enabled = q.Enable
		}
	}
	return nil
}

func (f *fake) RestartAdapter(_ context.Context, name string) error {
	f.record("%s: restart", name)
	return nil
}

func (f *fake) identity(name string) (registry.Adapter, error) {
	a, ok := f.reg.Adapter(name)
	if !ok {
		return a, errors.New("no adapter " + name)
	}
	return a, nil
}

func (f *fake) Settings(_ context.Context, adapter string) (out []api.Setting, err error) {
	a, err := f.identity(adapter)
	if err != nil {
		return nil, err
	}
	for _, s := range f.reg.Settings(a) {
		x := api.Setting{Name: s.Key.Name, Title: s.Key.Title, Value: s.Text(), UI: s.Key.UI, Effect: "at restart", Status: "built"}
		if s.Key.Effect == catalogue.AtOnce {
			x.Effect = "at once"
		}
		if s.Key.Status == catalogue.StoredOnly {
			x.Status = "stored only"
		}
		if s.Stored {
			v := x.Value
			x.Stored = &v
		}
		for _, c := range s.Key.Choices {
			x.Choices = append(x.Choices, api.Choice{Value: fmt.Sprint(c.Value), Name: c.Name})
		}
		out = append(out, x)
	}
	return out, nil
}

func (f *fake) change(adapter, key string, value *string) (api.Notices, error) {
	a, err := f.identity(adapter)
	if err != nil {
		return api.Notices{}, err
	}
	changes, err := a.SetKey(key, value)
	if err != nil {
		return api.Notices{}, err
	}
	return api.Notices{}, f.reg.Apply(changes...)
}

func (f *fake) Set(_ context.Context, adapter, key, value string) (api.Notices, error) {
	f.record("%s: %s=%s", adapter, key, value)
	return f.change(adapter, key, &value)
}

func (f *fake) Reset(_ context.Context, adapter, key string) (api.Notices, error) {
	f.record("%s: %s=default", adapter, key)
	return f.change(adapter, key, nil)
}

func (f *fake) LoadRegistry(context.Context) (*registry.Registry, error) { return f.reg, nil }

func (f *fake) ChangeRegistry(_ context.Context, changes []registry.Change, _ bool) ([]registry.Notice, error) {
	var path string
	var values []string
	for _, c := range changes {
		path = strings.TrimPrefix(c.Key.String(), registry.Root+`\`+registry.ControlSet+`\`)
		path = strings.TrimPrefix(path, `Services\SoftVPI\PowerShell\`)
		switch c.Kind {
		case registry.SetValue:
			text, _ := c.Value.Text()
			values = append(values, c.Value.Name+"="+text)
		case registry.DeleteKey:
			f.record(`no record %s`, path)
		}
	}
	if len(values) > 0 {
		f.record("record %s (%s)", path, strings.Join(values, ", "))
	}
	return nil, f.reg.Apply(changes...)
}

// Get answers as a driver without connections, events and counters.
func (f *fake) Get(_ context.Context, path string, q url.Values, out any) error {
	f.asked = append(f.asked, path+"?"+q.Encode())
	return json.Unmarshal([]byte(map[bool]string{true: "[]", false: "{}"}[path == "/counters/sets"]), out)
}

// room is the host of scripts in tests.
type room struct {
	*Set
	files map[string]*bytes.Buffer
	ran   []string
}

type paper struct{ *bytes.Buffer }

func (paper) Close() error { return nil }

func (r *room) Create(name string, _ bool) (io.WriteCloser, error) {
	if r.files == nil {
		r.files = map[string]*bytes.Buffer{}
	}
	r.files[name] = &bytes.Buffer{}
	return paper{r.files[name]}, nil
}

func (r *room) Confirm(string) (bool, error) { return true, nil }
func (r *room) Getenv(string) string         { return "" }

func (r *room) Program(_ context.Context, name string, args []string, _, _ io.Writer) (int, bool) {
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	if !slices.Contains([]string{"mlx5cmd", "mlxtool", "mlxconfig", "perf_tuning", "vlan_config", "part_man"}, name) {
		return 0, false
	}
	r.ran = append(r.ran, strings.Join(append([]string{name}, args...), " "))
	return 0, true
}

// play runs a script, and returns what it prints, what it says besides, and how many of its commands failed.
func play(t testing.TB, f *fake, source string) (out, said string, failures int) {
	t.Helper()
	s, err := powershell.Parse(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	set := New(f, f.net)
	var o, e bytes.Buffer
	h := &room{Set: set}
	in := powershell.New(powershell.Config{Host: h, Out: &o, Err: &e, Suggestions: set.Suggest})
	if err := in.Run(t.Context(), s); err != nil {
		t.Errorf("%s: %v", source, err)
	}
	for _, p := range h.ran {
		f.record("run %s", p)
	}
	return o.String(), e.String(), in.Failures()
}
