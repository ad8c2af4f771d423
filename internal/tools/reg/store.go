package reg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/registry"
)

// store is where the registry is: in a running driver, or in its file.
type store interface {
	// Load returns the current registry, for reading only.
	Load(context.Context) (*registry.Registry, error)
	// Apply makes the changes, all or none. Values that the catalogue does not allow are refused or, with
	// unchecked, stored.
	Apply(ctx context.Context, changes []registry.Change, unchecked bool) ([]registry.Notice, error)
	Close() error
}

// open opens the registry: in the driver if one runs, otherwise in its file. A state directory without a
// socket selects the file, which is made if there is none and create says so.
func open(ctx context.Context, socket, state string, create bool) (store, error) {
	if state != "" && socket == "" {
		return openFile(state, create)
	}
	client := api.NewClient(socket)
	reg, err := client.LoadRegistry(ctx)
	if errors.Is(err, api.ErrNotRunning) {
		return openFile(state, create)
	}
	if err != nil {
		return nil, err
	}
	return &running{client, reg}, nil
}

// running is the registry of a running driver.
type running struct {
	client *api.Client
	reg    *registry.Registry
}

func (r *running) Load(context.Context) (*registry.Registry, error) { return r.reg, nil }

func (r *running) Apply(ctx context.Context, changes []registry.Change, unchecked bool) ([]registry.Notice, error) {
	return r.client.ChangeRegistry(ctx, changes, unchecked)
}

func (r *running) Close() error { return nil }

// file is the registry of a driver that does not run.
type file struct{ reg *registry.Registry }

// openFile opens the registry in a state directory; empty: the default. Without create, a registry that is not there is
// that of a driver that never ran, and stays away.
func openFile(dir string, create bool) (store, error) {
	if dir == "" {
		dir = paths.State()
	}
	if _, err := os.Stat(filepath.Join(dir, registry.FileName)); !create && errors.Is(err, fs.ErrNotExist) {
		return &file{registry.NewVolatile("there is no registry in " + dir)}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	r, err := registry.Open(dir)
	if errors.Is(err, registry.ErrLocked) {
		return nil, fmt.Errorf("%w: a driver runs with another socket (--socket names it)", err)
	}
	if err != nil {
		return nil, err
	}
	return &file{r}, nil
}

// Aside returns where an unreadable file was moved; empty if there was none.
func (f *file) Aside() string {
	to, _ := f.reg.SetAside()
	return to
}

func (f *file) Load(context.Context) (*registry.Registry, error) { return f.reg, nil }

func (f *file) Apply(_ context.Context, changes []registry.Change, unchecked bool) ([]registry.Notice, error) {
	if why := f.reg.Volatile(); why != "" {
		return nil, errors.New(why)
	}
	var notices []registry.Notice
	if !unchecked {
		var err error
		if notices, err = f.reg.Check(changes); err != nil {
			return nil, err
		}
	}
	return notices, f.reg.Apply(changes...)
}

func (f *file) Close() error { return f.reg.Close() }
