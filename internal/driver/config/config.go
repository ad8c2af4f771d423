// Package config defines the driver's configuration: the file, its defaults and limits. Everything is
// checked here, once.
package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// Config is the driver's configuration: that of the file, completed by flags. The zero value means the
// defaults of Complete.
type Config struct {
	Socket   string    `json:"socket,omitempty"` // attach socket; empty: paths.Socket
	State    string    `json:"state,omitempty"`  // directory of the lock file; empty: paths.State
	Adapters []Adapter `json:"adapters,omitempty"`

	// UpdateGIDTimerFrequency is the interval, in milliseconds, at which interface addresses are checked
	// for the GID tables of adapters that follow them, 0 to 10000; 0: never, absent: 3000 (the registry
	// key of that name).
	UpdateGIDTimerFrequency *uint32 `json:"update_gid_timer_frequency,omitempty"`
	// Readers says who, besides the driver's user and root, may read through the management socket:
	// "owner" (nobody), "group" or "everyone"; empty: owner. Nobody else may change anything.
	Readers string `json:"readers,omitempty"`
	// Programs says whose programs, besides those of the driver's user and of root, may attach: "owner"
	// (nobody's), "group" or "everyone"; empty: owner.
	Programs string `json:"programs,omitempty"`
	// VirtualSwitches are switches over adapters, with network adapters for the host, namespaces and machines.
	VirtualSwitches []VirtualSwitch `json:"virtual_switches,omitempty"`
	// Overlay are entries of virtual subnets, each a kind and its settings as softvpi overlay add takes them.
	Overlay []string `json:"overlay,omitempty"`
	// Limits limit what attached programs make the driver hold; nil: the zero value.
	Limits *Limits `json:"limits,omitempty"`
	// Containers are sockets for containers, each with a quota; nil: none.
	Containers *Containers `json:"containers,omitempty"`
	// Manage also serves the management interface on TCP; nil: only on the socket.
	Manage *Manage `json:"manage,omitempty"`
	// Web is 127.0.0.1 and the port of the device manager pages; empty: a free port, from the time
	// `softvpi web` asks for them.
	Web string `json:"web,omitempty"`
	// Fabric is the fabric of the adapters with a cable, InfiniBand or Ethernet; nil: the zero value.
	Fabric *Fabric `json:"fabric,omitempty"`
	// SubnetManager is that of a fabric in the driver; nil: the zero value.
	SubnetManager *SubnetManager `json:"subnet_manager,omitempty"`
	// FaultInjection allows softvpi dbg fault: somebody who may change things can make something go wrong in an adapter.
	FaultInjection bool `json:"fault_injection,omitempty"`
	// Trace is the trace that runs from the start; nil: the zero value.
	Trace *Trace `json:"trace,omitempty"`
	// SkipSelfCheck skips the check at start.
	SkipSelfCheck bool `json:"skip_self_check,omitempty"`
}

// Error is an error in a configuration file, or concerning a file that it names.
type Error struct {
	Path string // of the file, or the field that names a file
	Err  error  // names the field and the allowed values
}

func (e *Error) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Load reads the configuration file at path. Unknown fields are refused. The error is a *Error, which
// wraps fs.ErrNotExist if there is no such file.
func Load(path string) (Config, error) {
	f, err := inputfile.Open(path, maxConfig)
	if err != nil {
		return Config{}, &Error{"configuration file", err}
	}
	defer f.Close()
	c, err := decode(f)
	if err != nil {
		return Config{}, &Error{path, err}
	}
	return c, nil
}

// maxConfig is the maximum size of a configuration file in bytes.
const maxConfig = 1 << 20

func decode(r io.Reader) (Config, error) {
	var c Config
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, describe(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("something follows the configuration object; allowed: one JSON object")
	}
	return c, nil
}

// describe converts an error of the JSON decoder to the file's terms.
func describe(err error) error {
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s; allowed: socket, state, programs, limits with memory, memory_per_user, memory_per_program, descriptors_per_program, containers with count, memory, descriptors, quotas, readers, manage with listen, certificate, key, token_file, web, skip_self_check, fault_injection, virtual_switches with name, adapter, iov, packetdirect, vfp, adapters with function, settings, overlay, trace with level, levels, megabytes, file, "+
			"update_gid_timer_frequency, fabric with connect, netlist, rate, timing, name, cables, key, subnet_manager (true, false, or an object with off, priority, routing, partitions, lmc, dir, virt_enable), "+
			"adapters with name, generation, link, device, node, port, address, interface, datagram, peer, switch, pvid, trunk, team with of, type, hash, no_fail_back_to_primary, slow_lacp, passive_lacp, lacp_choice, members with interface, tap, switch, adapter, datagram, peer, primary, set_team_mac_address, prefix, gateway, mac, vlan, no_probes, link_mtu, host, host_peer, wake, follow_interface, udp_port, roce_max_frame_size, roce_rc_e2e_flow_control_enable, max_cm_retries, path, impairment, receive_buffer, frames, any_source_port, speed, limit_speed, disabled", field)
	}
	var field *api.FieldError
	if errors.As(err, &field) {
		return field
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return api.Wrong(cmp.Or(kind.Field, "the configuration"), article(kind.Value), article(wanted(kind.Type)))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	return fmt.Errorf("not a configuration: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// wanted returns the JSON name of a Go type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	}
	return t.String()
}

// article prefixes a word with its article.
func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) && !strings.HasPrefix(word, "uint") {
		return "an " + word
	}
	return "a " + word
}

// Names returns the names of the adapters, by their index.
func (c *Config) Names() (names []string) {
	for i := range c.Adapters {
		names = append(names, c.Adapters[i].Name)
	}
	return names
}

// Complete fills in the defaults and checks everything. Errors are *api.FieldError.
func (c Config) Complete() (Config, error) {
	if c.Socket == "" {
		c.Socket = paths.Socket()
	}
	if c.State == "" {
		c.State = paths.State()
	}
	if max := paths.MaxSocket - len(paths.Management("")); len(c.Socket) > max {
		return c, api.Wrong("socket", fmt.Sprintf("%d bytes long (%s)", len(c.Socket), c.Socket),
			fmt.Sprintf("a path of at most %d bytes", max))
	}
	if f := c.UpdateGIDTimerFrequency; f != nil && *f > 10000 {
		return c, api.Wrong("update_gid_timer_frequency", fmt.Sprint(*f), "0 (never) to 10000 milliseconds")
	}
	for _, f := range [...]struct{ name, value string }{{"readers", c.Readers}, {"programs", c.Programs}} {
		if err := checkAudience(f.name, f.value); err != nil {
			return c, err
		}
	}
	if err := checkPages(c.Web); err != nil {
		return c, err
	}
	if err := c.Limits.complete(); err != nil {
		return c, err
	}
	if err := c.Containers.complete(c.Socket); err != nil {
		return c, err
	}
	if err := errors.Join(c.Manage.complete(c.State), c.Trace.complete()); err != nil {
		return c, err
	}
	if len(c.Adapters) == 0 {
		c.Adapters = defaultAdapters()
	}
	if len(c.Adapters) > maxAdapters {
		return c, api.Wrong("adapters", fmt.Sprint(len(c.Adapters), " entries"), fmt.Sprintf("1 to %d", maxAdapters))
	}
	if err := errors.Join(c.Fabric.complete(), c.SubnetManager.complete()); err != nil {
		return c, err
	}
	c.Adapters = append([]Adapter(nil), c.Adapters...)
	cables := 0
	names, places := map[string]bool{}, map[netip.AddrPort]bool{}
	for i := range c.Adapters {
		a := &c.Adapters[i]
		if err := a.complete(i); err != nil {
			return c, err
		}
		where := netip.AddrPortFrom(a.Address, a.UDPPort)
		if names[a.Name] {
			return c, api.Wrong(fmt.Sprintf("adapters[%d].name", i), fmt.Sprintf("%q again", a.Name), "a name that no other adapter has")
		}
		if a.Cable() || a.Link == LinkFabric {
			cables++
		}
		if a.Link == LinkFabric && (c.Fabric == nil || c.Fabric.Connect == "") {
			return c, api.Wrong("fabric.connect", "missing", fmt.Sprintf("the fabric of %q: its name, the path of its socket, or udp://HOST[:PORT]", a.Name))
		}
		if places[where] && a.Address.IsValid() {
			return c, api.Wrong(fmt.Sprintf("adapters[%d].address", i), where.String()+" again",
				"an address and UDP port that no other adapter has")
		}
		names[a.Name], places[where] = true, true
	}
	if err := errors.Join(c.completeDevices(), c.completeWires(), c.completeSwitches(), c.completeTeams(), c.completeHosts(),
		c.completeVirtualSwitches()); err != nil {
		return c, err
	}
	if cables == 0 && (c.Fabric != nil || c.SubnetManager != nil) {
		return c, api.Wrong(map[bool]string{true: "fabric", false: "subnet_manager"}[c.Fabric != nil], "given",
			`nothing without an adapter with "link": "cable" or "fabric"`)
	}
	if c.SubnetManager != nil && !c.SubnetManager.Off && c.Fabric != nil && c.Fabric.Connect != "" {
		return c, api.Wrong("subnet_manager", "given", "false or nothing where another process runs the fabric")
	}
	return c, nil
}

// GIDInterval returns UpdateGIDTimerFrequency in the adapters' form: 0 the default, negative never.
func (c *Config) GIDInterval() time.Duration {
	switch f := c.UpdateGIDTimerFrequency; {
	case f == nil:
		return 0
	case *f == 0:
		return -1
	default:
		return time.Duration(*f) * time.Millisecond
	}
}
