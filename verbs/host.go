package verbs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// Mode is how a Host reaches its adapters.
type Mode uint8

// The modes.
const (
	Embedded Mode = iota + 1 // the adapters live in this process
	Attached                 // the adapters belong to a driver process
)

// String returns "embedded" or "attached".
func (m Mode) String() string {
	switch m {
	case Embedded:
		return "embedded"
	case Attached:
		return "attached"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Options says how Open finds the adapters. The zero value attaches to the driver if it answers on its
// default socket, and otherwise embeds one default adapter.
type Options struct {
	// Mode selects one way; 0 tries to attach and falls back to embedding.
	Mode Mode
	// Socket is the path of the driver's socket; empty: DefaultSocket.
	Socket string
	// Name is the program's name in status output; empty: the name of the executable.
	Name string
	// NoDirect keeps an attached program off the direct path: the driver moves its messages, and no other
	// program accesses its rings and memory.
	NoDirect bool
	// Embed configures the adapters if they are embedded.
	Embed Config
}

// Config describes the adapters of an embedded Host.
type Config struct {
	// Name is the program's name in status output; empty: the name of the executable.
	Name string
	// Adapters to create; empty: one with default values.
	Adapters []AdapterConfig
	// Log receives messages for an administrator; nil: none.
	Log *slog.Logger
}

// AdapterConfig describes one embedded adapter. Zero fields mean defaults.
type AdapterConfig struct {
	Name    string     // "Ethernet 1" and so on
	Addr    netip.Addr // of the port, an address of this machine; default 127.0.0.1
	Addrs   []netip.Addr
	UDPPort uint16 // RoCE v2 destination port (roce_udp_dport); default 4791
	// MaxFrameSize is the largest payload of a packet (RoceMaxFrameSize): 256,
	// 512, 1024, 2048 or 4096; default: what the interface's MTU allows.
	MaxFrameSize int
	// Wire makes connections between programs on this host use packets too. By default their data is
	// copied from region to region.
	Wire bool
	// Impairment is what the port does to the packets that it sends, in the syntax of softvpi link set,
	// such as "loss=1% delay=50us seed=7": loss, delay, jitter, reorder, duplicate, corrupt, ecn, rate,
	// seed; empty: nothing. The same seed loses the same packets. Connections of an impaired port use
	// packets.
	Impairment string
	// ReceiveBuffer is the size of the socket's receive buffer in bytes; default: as large as the system
	// allows.
	ReceiveBuffer int
	// Frames says whether single short packets are sent as Ethernet frames beside the UDP socket, which is
	// faster: "auto" (if the process is allowed to, and no firewall would be bypassed), "on" (even
	// bypassing a firewall) or "off"; default: the environment variable SOFTVPI_FRAMES, else "auto".
	Frames string
	// AnySourcePort accepts packets of a connection from any UDP port of its peer's address. By default
	// they must come from the port that the first of them came from, as with every adapter that uses one
	// port for a queue pair; the environment variable SOFTVPI_ANY_SOURCE_PORT=1 sets it too.
	AnySourcePort bool
	// Ethernet carries whole Ethernet frames in place of UDP sockets; Addr has no default then. nil: sockets.
	Ethernet *Ethernet
}

// Host is a session with the adapters of this machine.
type Host struct {
	mode    Mode
	backend backend
	carrier carrier      // backend, if it is a carrier
	device  *device.Host // embedded only
	ctx     context.Context
	cancel  context.CancelFunc
	events  *dispatcher
	pins    pins
	paging  *paging // embedded only

	closeOnce sync.Once
	closeErr  error
}

// DefaultSocket returns the path on which the driver listens: $SOFTVPI_SOCKET, else softvpi/driver.sock in
// $XDG_RUNTIME_DIR, else in a directory of this user below the system's temporary directory.
func DefaultSocket() string { return paths.Socket() }

// Open returns a session with the adapters: attached if the driver answers on its socket, else embedded,
// unless o.Mode asks for one of them.
func Open(ctx context.Context, o Options) (*Host, error) {
	switch o.Mode {
	case Embedded:
		return o.embed()
	case Attached:
		return attach(ctx, o.Socket, o.ipc())
	case 0:
	default:
		return nil, newError("open", ErrInvalid, "Mode is %d, want 0, Embedded or Attached", o.Mode)
	}
	h, err := attach(ctx, o.Socket, o.ipc())
	if err == nil {
		return h, nil
	}
	if !noDriver(err) {
		return nil, err
	}
	return o.embed()
}

func (o *Options) ipc() client.Options { return client.Options{Name: o.Name, NoDirect: o.NoDirect} }

func (o *Options) embed() (*Host, error) {
	c := o.Embed
	if c.Name == "" {
		c.Name = o.Name
	}
	return Embed(c)
}

// Embed creates adapters in this process and returns a session with them. Their addresses belong to this
// process until the Host is closed.
func Embed(cfg Config) (*Host, error) {
	dh, err := device.NewHost(device.Config{Log: cfg.Log})
	if err != nil {
		return nil, wrap("embed", err)
	}
	adapters := cfg.Adapters
	if len(adapters) == 0 {
		adapters = []AdapterConfig{{}}
	}
	for i := range adapters {
		if err := embedAdapter(dh, &adapters[i]); err != nil {
			dh.Close()
			return nil, err
		}
	}
	name := cfg.Name
	if name == "" {
		name = programName()
	}
	h, err := within(dh, name, dh, nil)
	if err != nil {
		dh.Close()
		return nil, wrap("embed", err)
	}
	return h, nil
}

func embedAdapter(dh *device.Host, a *AdapterConfig) error {
	addr := a.Addr
	if a.Ethernet != nil && !addr.IsValid() {
		return newError("embed", ErrInvalid, "Addr is missing, want the address of the adapter on its Ethernet")
	}
	if !addr.IsValid() {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if a.MaxFrameSize < 0 || a.MaxFrameSize > 4096 {
		return newError("embed", ErrInvalid, "MaxFrameSize is %d, want 0, 256, 512, 1024, 2048 or 4096", a.MaxFrameSize)
	}
	path := device.PathAuto
	if a.Wire {
		path = device.PathWire
	}
	name := a.Frames
	if name == "" {
		name = os.Getenv("SOFTVPI_FRAMES")
	}
	frames, ok := packet.ParseMode(name)
	if !ok {
		return newError("embed", ErrInvalid, "Frames is %q, want auto, on or off", name)
	}
	anyPort, err := a.anySourcePort()
	if err != nil {
		return err
	}
	impairment, err := impair.Impairment{}.Parse(a.Impairment)
	if err != nil {
		return newError("embed", ErrInvalid, "Impairment: %v", err)
	}
	cfg := device.AdapterConfig{
		Frames: frames, AnySourcePort: anyPort,
		Name: a.Name, Addr: addr, Addrs: a.Addrs, UDPPort: a.UDPPort,
		RoceMaxFrameSize: uint32(a.MaxFrameSize), Path: path, ReceiveBuffer: a.ReceiveBuffer,
	}
	if a.Ethernet != nil {
		if err := a.Ethernet.put(&cfg, dh.Wake); err != nil {
			return err
		}
	}
	index, err := dh.AddAdapter(cfg)
	if err != nil && cfg.Link != nil {
		cfg.Link.Close()
	}
	if err == nil && a.Impairment != "" {
		err = dh.SetImpairment(index, impairment)
	}
	return wrapAddr("embed adapter at", netip.AddrPortFrom(addr, a.UDPPort), err)
}

// anySourcePort returns AnySourcePort, or what the environment says.
func (a *AdapterConfig) anySourcePort() (bool, error) {
	s := os.Getenv("SOFTVPI_ANY_SOURCE_PORT")
	if a.AnySourcePort || s == "" {
		return a.AnySourcePort, nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, newError("embed", ErrInvalid, "SOFTVPI_ANY_SOURCE_PORT is %q, want 1 or 0", s)
	}
	return v, nil
}

func programName() string {
	if exe, err := os.Executable(); err == nil {
		return filepath.Base(exe)
	}
	return "go program"
}

func newHost(mode Mode, b backend, dh *device.Host) *Host {
	h := &Host{mode: mode, backend: b, device: dh}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.events = newDispatcher(b)
	if c, ok := b.(carrier); ok {
		h.carrier = c
		c.Deliver(h.events.take)
	}
	go h.events.run(h.ctx)
	return h
}

// Mode returns whether the adapters are embedded or attached.
func (h *Host) Mode() Mode { return h.mode }

// Close ends the session. Its objects are destroyed, its queue pairs flushed, and waiting calls return
// ErrClosed or ErrCanceled. Closing twice is harmless.
func (h *Host) Close() error {
	h.closeOnce.Do(func() {
		h.events.closing.Store(true)
		h.closeErr = h.backend.Close()
		if h.device != nil {
			if err := h.device.Close(); h.closeErr == nil {
				h.closeErr = err
			}
		}
		if h.paging != nil {
			h.paging.close()
		}
		h.cancel()
		h.events.wait()
		h.pins.releaseAll()
	})
	return wrap("close", h.closeErr)
}

func (h *Host) closed() bool { return h.ctx.Err() != nil }

// destroyed wraps the error of destroying an object. It drops the error if the session is closed or its
// driver is gone, since the object is gone then, too.
func (h *Host) destroyed(op string, err error) error {
	if h.closed() || errors.Is(err, &command.Error{Code: command.Removed}) {
		return nil
	}
	return wrap(op, err)
}
