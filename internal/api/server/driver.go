package server

import (
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// Driver is the control plane of a running driver, which implements the requests. Its methods may be
// called at any time; changes are made one after the other, each completely or not at all. Errors about a
// request are *FieldError, about the registry those of package registry.
type Driver interface {
	Status() api.Status
	// Overview is Status without the queue pairs, of which there may be many.
	Overview() api.Status
	// SetAdapter enables or disables an adapter.
	SetAdapter(api.AdapterRequest) error
	// RestartAdapter disables and enables an adapter, which applies its current keys.
	RestartAdapter(name string) error
	// SleepAdapter puts the host of an adapter's Ethernet function to sleep, or wakes it.
	SleepAdapter(api.SleepRequest) error
	// SetLink changes the link of an adapter.
	SetLink(api.LinkRequest) error
	// Registry returns the driver's registry, for reading.
	Registry() *registry.Registry
	// ChangeRegistry makes changes, all or none, and acts on them.
	ChangeRegistry(changes []registry.Change, unchecked bool) ([]registry.Notice, error)
	// Settings returns the keys of an adapter with their values.
	Settings(adapter string) ([]api.Setting, error)
	// Set sets a key of an adapter, identified by its name alone, from text; nil: back to the default.
	Set(adapter, key string, value *string) ([]registry.Notice, error)
}
