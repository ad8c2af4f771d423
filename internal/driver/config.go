package driver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/paths"
)

// Config is what the driver runs with: the configuration file, completed by
// flags. The zero value means the defaults of Complete.
type Config struct {
	Socket   string    `json:"socket,omitempty"` // attach socket; empty: paths.Socket
	State    string    `json:"state,omitempty"`  // directory of the lock file; empty: paths.State
	Adapters []Adapter `json:"adapters,omitempty"`

	// UpdateGIDTimerFrequency is how often, in milliseconds, the addresses of the
	// interfaces are looked at for the GID tables of adapters that follow theirs, 0
	// to 10000; 0: never, absent: 3000 (the registry key of that name).
	UpdateGIDTimerFrequency *uint32 `json:"update_gid_timer_frequency,omitempty"`
	// Readers says who beside the driver's user and root may read at the management socket: "owner" (nobody),
	// "group" or "everyone"; empty: owner. Nobody else may change anything.
	Readers string `json:"readers,omitempty"`
	// Manage serves the management interface on TCP too; nil: on the socket alone.
	Manage *Manage `json:"manage,omitempty"`
	// Web is 127.0.0.1 and the port of the device manager pages; empty: a port that is free, from when `softvpi web`
	// asks for them.
	Web string `json:"web,omitempty"`
	// Fabric is the InfiniBand fabric of the adapters with a cable; nil: the zero value.
	Fabric *Fabric `json:"fabric,omitempty"`
	// SubnetManager is that of a fabric in the driver; nil: the zero value.
	SubnetManager *SubnetManager `json:"subnet_manager,omitempty"`
	// SkipSelfCheck leaves the check at start out.
	SkipSelfCheck bool `json:"skip_self_check,omitempty"`
}

// Adapter describes one adapter. What its registry keys say goes before what is said here.
type Adapter struct {
	Name string `json:"name"`
	// Generation is "mlx5" (ConnectX-4 class and later) or "mlx4" (ConnectX-3 class): which keys, defaults and
	// names the adapter has; empty: mlx5.
	Generation string `json:"generation,omitempty"`
	// Link is "udp", "cable" for a port of an InfiniBand fabric, or "vpi" for one that can be either; empty: udp.
	Link string `json:"link,omitempty"`
	// Device is the device of which this is a port, the first or second as they come; empty: one of its own.
	Device string `json:"device,omitempty"`
	// Node is the node of the fabric, by its id or description, at whose port Port, 0 the first, a cable is plugged in; empty: the
	// first channel adapter that is free.
	Node string `json:"node,omitempty"`
	Port uint8  `json:"port,omitempty"`
	// Address is the port's; a cable needs none, and has programs call its port by it as well as by its GID.
	Address netip.Addr `json:"address,omitzero"`
	// Interface is the name of the network interface that an InfiniBand port has in the system for IPoIB, on Linux and with the right to
	// make one; empty: none.
	Interface string `json:"interface,omitempty"`
	// FollowInterface puts every address of the interface that has Address in the
	// GID table and keeps it so.
	FollowInterface bool `json:"follow_interface,omitempty"`
	// UDPPort is the RoCE v2 destination port (roce_udp_dport); 0 means 4791.
	UDPPort uint16 `json:"udp_port,omitempty"`
	// RoceMaxFrameSize is the largest payload of a packet in bytes; 0: from the
	// MTU of the interface.
	RoceMaxFrameSize uint32 `json:"roce_max_frame_size,omitempty"`
	// Path is "auto", "wire", "local" or "direct"; empty means auto.
	Path string `json:"path,omitempty"`
	// Impairment is what the link does to packets, in the form of `softvpi link
	// set`: "loss=1% delay=50us seed=7".
	Impairment string `json:"impairment,omitempty"`
	// RoceRcE2EFlowControlEnable is whether RC connections use end-to-end credits;
	// absent: true (the registry key of that name).
	RoceRcE2EFlowControlEnable *bool `json:"roce_rc_e2e_flow_control_enable,omitempty"`
	// MaxCMRetries is how often a message of the connection manager is sent again, 1
	// to 15; 0: 15.
	MaxCMRetries int `json:"max_cm_retries,omitempty"`
	// ReceiveBuffer is the size of the socket's receive buffer in bytes; 0: as
	// large as the system allows.
	ReceiveBuffer int `json:"receive_buffer,omitempty"`
	// Frames is "auto", "on" or "off": whether short packets go as Ethernet frames beside the UDP
	// socket; empty means auto.
	Frames   string `json:"frames,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
}

// A FieldError is a wrong value in the configuration or in a request.
type FieldError = api.FieldError

func fieldError(field, value, allowed string) *FieldError {
	return &FieldError{Field: field, Value: value, Allowed: allowed}
}

// A ConfigError is what is wrong in a configuration file, or with a file that it names.
type ConfigError struct {
	Path string // of the file; of one that is named, the field
	Err  error  // names the field and the allowed values
}

func (e *ConfigError) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

// Load reads the configuration file at path. Fields that do not exist are
// refused. The error is a *ConfigError; behind it stands fs.ErrNotExist where there is no such file.
func Load(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, &ConfigError{"configuration file", err}
	}
	defer f.Close()
	c, err := decode(f)
	if err != nil {
		return Config{}, &ConfigError{path, err}
	}
	return c, nil
}

// maxConfig bounds a configuration file in bytes.
const maxConfig = 1 << 20

func decode(r io.Reader) (Config, error) {
	var c Config
	d := json.NewDecoder(io.LimitReader(r, maxConfig))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, describe(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("something follows the configuration object; allowed: one JSON object")
	}
	return c, nil
}

// describe puts an error of the JSON decoder in the words of the file.
func describe(err error) error {
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s; allowed: socket, state, readers, manage with listen, certificate, key, token_file, web, skip_self_check, "+
			"update_gid_timer_frequency, fabric with connect, netlist, rate, timing, name, cables, key, subnet_manager (true, false, or an object with off, priority, routing, partitions, lmc, dir), "+
			"adapters with name, generation, link, device, node, port, address, interface, follow_interface, udp_port, roce_max_frame_size, roce_rc_e2e_flow_control_enable, max_cm_retries, path, impairment, receive_buffer, frames, disabled", field)
	}
	var field *FieldError
	if errors.As(err, &field) {
		return field
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fieldError(cmp.Or(kind.Field, "the configuration"), article(kind.Value), article(wanted(kind.Type)))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	return fmt.Errorf("not a configuration: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// wanted is the JSON of a field that is a Go type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	}
	return t.String()
}

// article puts a word behind its article.
func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) && !strings.HasPrefix(word, "uint") {
		return "an " + word
	}
	return "a " + word
}

// DefaultAdapters are the adapters of a driver that is given none. macOS has
// only 127.0.0.1 on its loopback interface, so there it is one.
func DefaultAdapters() []Adapter {
	if runtime.GOOS == "darwin" {
		return []Adapter{{Name: "Ethernet 1", Address: netip.MustParseAddr("127.0.0.1")}}
	}
	return []Adapter{
		{Name: "Ethernet 1", Address: netip.MustParseAddr("127.0.0.2")},
		{Name: "Ethernet 2", Address: netip.MustParseAddr("127.0.0.3")},
	}
}

// Complete fills in what is empty and checks everything. Errors are *FieldError.
func (c Config) Complete() (Config, error) {
	if c.Socket == "" {
		c.Socket = paths.Socket()
	}
	if c.State == "" {
		c.State = paths.State()
	}
	if max := paths.MaxSocket - len(paths.Management("")); len(c.Socket) > max {
		return c, fieldError("socket", fmt.Sprintf("%d bytes long (%s)", len(c.Socket), c.Socket), fmt.Sprintf("a path of at most %d bytes", max))
	}
	if f := c.UpdateGIDTimerFrequency; f != nil && *f > 10000 {
		return c, fieldError("update_gid_timer_frequency", fmt.Sprint(*f), "0 (never) to 10000 milliseconds")
	}
	if _, err := readersMode(c.Readers); err != nil {
		return c, err
	}
	if err := checkPages(c.Web); err != nil {
		return c, err
	}
	if err := c.Manage.complete(c.State); err != nil {
		return c, err
	}
	if len(c.Adapters) == 0 {
		c.Adapters = DefaultAdapters()
	}
	if len(c.Adapters) > maxAdapters {
		return c, fieldError("adapters", fmt.Sprint(len(c.Adapters), " entries"), fmt.Sprintf("1 to %d", maxAdapters))
	}
	if err := errors.Join(c.Fabric.complete(), c.SubnetManager.complete()); err != nil {
		return c, err
	}
	c.Adapters = append([]Adapter(nil), c.Adapters...)
	cables, ports := 0, map[string]int{}
	names, places := map[string]bool{}, map[netip.AddrPort]bool{}
	for i := range c.Adapters {
		a := &c.Adapters[i]
		if err := a.complete(i); err != nil {
			return c, err
		}
		where := netip.AddrPortFrom(a.Address, a.UDPPort)
		if names[a.Name] {
			return c, fieldError(fmt.Sprintf("adapters[%d].name", i), fmt.Sprintf("%q again", a.Name), "a name that no other adapter has")
		}
		if a.cable() {
			cables++
		}
		if ports[a.Device]++; a.Device != "" && ports[a.Device] > 2 {
			return c, fieldError(fmt.Sprintf("adapters[%d].device", i), fmt.Sprintf("%q a third time", a.Device), "two ports of a device")
		}
		if places[where] && a.Address.IsValid() {
			return c, fieldError(fmt.Sprintf("adapters[%d].address", i), where.String()+" again", "an address and UDP port that no other adapter has")
		}
		names[a.Name], places[where] = true, true
	}
	if cables == 0 && (c.Fabric != nil || c.SubnetManager != nil) {
		return c, fieldError(map[bool]string{true: "fabric", false: "subnet_manager"}[c.Fabric != nil], "given", `nothing without an adapter with "link": "cable"`)
	}
	if c.SubnetManager != nil && !c.SubnetManager.Off && c.Fabric != nil && c.Fabric.Connect != "" {
		return c, fieldError("subnet_manager", "given", "false or nothing where another process runs the fabric")
	}
	return c, nil
}

// gidInterval is UpdateGIDTimerFrequency as the adapters take it: 0 the default,
// negative never.
func (c *Config) gidInterval() time.Duration {
	switch f := c.UpdateGIDTimerFrequency; {
	case f == nil:
		return 0
	case *f == 0:
		return -1
	default:
		return time.Duration(*f) * time.Millisecond
	}
}

const (
	maxAdapters   = 64
	defaultPort   = 4791
	maxNameLength = 63
)

// complete fills in and checks adapter number i.
func (a *Adapter) complete(i int) error {
	field := func(name string) string { return fmt.Sprintf("adapters[%d].%s", i, name) }
	switch a.Link {
	case "", linkUDP, linkCable, linkVPI:
	default:
		return fieldError(field("link"), fmt.Sprintf("%q", a.Link), "udp, cable, vpi")
	}
	if a.Name == "" {
		a.Name = fmt.Sprintf("%s %d", map[bool]string{false: "Ethernet", true: "InfiniBand"}[a.Link == linkCable], i+1)
	}
	if a.cable() {
		if err := a.completeCable(field); err != nil {
			return err
		}
	} else if a.Node != "" || a.Port != 0 {
		return fieldError(field("node"), "given", `nothing without "link": "cable" or "vpi"`)
	}
	if a.UDPPort == 0 && a.Link != linkCable {
		a.UDPPort = defaultPort
	}
	if _, err := parseGeneration(a.Generation); err != nil {
		err.Field = field("generation")
		return err
	}
	if !a.Address.IsValid() && a.Link != linkCable {
		return fieldError(field("address"), "missing", "an IPv4 or IPv6 address of this machine")
	}
	a.Address = a.Address.Unmap()
	if a.Address.IsValid() && a.Address.IsUnspecified() || a.Address.IsMulticast() {
		return fieldError(field("address"), a.Address.String(), map[bool]string{true: "an IPv4 or IPv6 address of one port", false: "an IPv4 or IPv6 address of this machine"}[a.Link == linkCable])
	}
	if len(a.Name) > maxNameLength {
		return fieldError(field("name"), fmt.Sprintf("%d bytes long", len(a.Name)), fmt.Sprintf("up to %d bytes", maxNameLength))
	}
	switch a.RoceMaxFrameSize {
	case 0, 256, 512, 1024, 2048, 4096:
	default:
		return fieldError(field("roce_max_frame_size"), fmt.Sprint(a.RoceMaxFrameSize), "256, 512, 1024, 2048, 4096, or 0 for automatic")
	}
	if a.MaxCMRetries < 0 || a.MaxCMRetries > 15 {
		return fieldError(field("max_cm_retries"), fmt.Sprint(a.MaxCMRetries), "1 to 15, or 0 for 15")
	}
	if a.ReceiveBuffer < 0 || a.ReceiveBuffer > 1<<30 {
		return fieldError(field("receive_buffer"), fmt.Sprint(a.ReceiveBuffer), "0 (as large as allowed) to 1073741824 bytes")
	}
	if _, ok := packet.ParseMode(a.Frames); !ok {
		return fieldError(field("frames"), fmt.Sprintf("%q", a.Frames), strings.Join(packet.Modes, ", "))
	}
	if _, err := parsePath(a.Path); err != nil {
		err.Field = field("path")
		return err
	}
	if _, err := (impair.Impairment{}).Parse(a.Impairment); err != nil {
		return fmt.Errorf("%s: %w", field("impairment"), err)
	}
	return nil
}

func parsePath(s string) (device.PathPolicy, *FieldError) {
	switch s {
	case "", "auto":
		return device.PathAuto, nil
	case "wire":
		return device.PathWire, nil
	case "local":
		return device.PathLocal, nil
	case "direct":
		return device.PathDirect, nil
	}
	return 0, fieldError("path", fmt.Sprintf("%q", s), "auto, wire, local, direct")
}

// parseGeneration reads the generation of an adapter.
func parseGeneration(s string) (catalogue.Generation, *FieldError) {
	switch s {
	case "", "mlx5":
		return catalogue.MLX5, nil
	case "mlx4":
		return catalogue.MLX4, nil
	}
	return 0, &FieldError{Field: "generation", Value: fmt.Sprintf("%q", s), Allowed: "mlx5, mlx4"}
}

// ParseAdapter reads an adapter from a command line: name=address, with
// options after commas: "Ethernet 1=127.0.0.2,port=4791,mtu=1024,path=wire".
func ParseAdapter(s string) (Adapter, error) {
	const form = `NAME=ADDRESS[,port=1-65535][,mtu=256|512|1024|2048|4096][,path=auto|wire|local|direct][,frames=auto|on|off][,generation=mlx5|mlx4][,follow], or NAME=cable[,node=NODE][,ibport=1-254][,address=ADDRESS][,interface=NAME]`
	var a Adapter
	parts := strings.Split(s, ",")
	name, addr, ok := strings.Cut(parts[0], "=")
	if !ok {
		return a, fieldError("--adapter", fmt.Sprintf("%q", s), form)
	}
	a.Name = name
	var err error
	if addr == linkCable {
		a.Link = linkCable
	} else if a.Address, err = netip.ParseAddr(addr); err != nil {
		return a, fieldError("--adapter", fmt.Sprintf("%q", s), form)
	}
	given := map[string]bool{"address": a.Address.IsValid()}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		if given[key] {
			return a, fieldError("--adapter option", fmt.Sprintf("%q, after another %s", p, key), "each once")
		}
		given[key] = true
		switch key {
		case "port":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.UDPPort)
			if a.UDPPort == 0 {
				err = errors.New("zero")
			}
		case "mtu":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.RoceMaxFrameSize)
		case "path":
			a.Path = value
		case "frames":
			a.Frames = value
		case "generation":
			a.Generation = value
		case "node":
			a.Node = value
		case "ibport":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &a.Port)
		case "address":
			a.Address, err = netip.ParseAddr(value)
		case "interface":
			a.Interface = value
		case "follow":
			a.FollowInterface = true
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return a, fieldError("--adapter option", fmt.Sprintf("%q", p), form)
		}
	}
	return a, a.complete(0)
}
