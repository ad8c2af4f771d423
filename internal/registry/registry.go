package registry

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Registry is an open registry. Its methods may be called concurrently: reading takes no lock, changes are
// made one after the other.
type Registry struct {
	root  atomic.Pointer[node]
	mu    sync.Mutex // of changes
	store *store     // nil: nothing is kept
	// volatile says why nothing is kept; empty if everything is.
	volatile string
	aside    string // where a file that could not be read was moved
	cause    error  // why it could not be read
	closed   bool
	lineRate func(Adapter) uint64 // nil: unknown
	damaged  func(Damage)         // nil: nobody is told
}

// Damage says that another program has changed the registry's file while it was open. Nothing was lost: it was written anew
// from memory.
type Damage struct {
	Path  string
	Aside string // how the damaged file is named now; empty if it was gone
	Cause error
}

// SetDamaged sets a function that is told of damage. It must be called before the registry is used, and the function must
// not call the registry.
func (r *Registry) SetDamaged(tell func(Damage)) { r.damaged = tell }

// repaired tells of damage, if there was any.
func (r *Registry) repaired(d *Damage) {
	if d != nil && r.damaged != nil {
		r.damaged(*d)
	}
}

// Key is a snapshot of a key.
type Key struct {
	Path    Path
	Values  []Value // by name
	Subkeys []Path  // by name
}

// NewVolatile returns a registry in memory. The reason says why nothing is kept.
func NewVolatile(reason string) *Registry {
	r := &Registry{volatile: reason}
	r.root.Store(emptyTree())
	return r
}

// emptyTree returns the registry of a driver that never ran.
func emptyTree() *node {
	b := new(batch)
	root := &node{batch: b}
	for _, p := range []string{ControlSet + `\Services`, ControlSet + `\Control\Class`} {
		root = root.with(b, Path{p}.split(), true, func(*node) {})
	}
	return root
}

// Volatile says why changes are lost at the end; empty if they are kept.
func (r *Registry) Volatile() string { return r.volatile }

// SetAside returns where Open moved a file that it could not read, and why; empty if there was none.
func (r *Registry) SetAside() (file string, cause error) { return r.aside, r.cause }

// Close closes the file. If another program has damaged it, it is written anew before; the error says if it could not be,
// and then what was kept in it is lost.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.store == nil {
		return nil
	}
	err := r.store.intact()
	if errors.Is(err, errDamaged) {
		damage := &Damage{Path: r.store.path, Cause: err}
		if damage.Aside, err = r.store.renew(r.root.Load()); err != nil {
			return &StoreError{r.store.path, fmt.Errorf("%w, and it could not be written anew: %w", damage.Cause, err)}
		}
		r.repaired(damage)
	}
	return r.store.close()
}

// Apply makes all of the changes or none. When it returns nil they are on disk. Errors are *changeError,
// or a *StoreError if the file could not be written.
func (r *Registry) Apply(changes ...Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &StoreError{"registry", errors.New("it is closed")}
	}
	b := new(batch)
	next := r.root.Load()
	var err error
	for i := range changes {
		if next, err = changes[i].apply(b, next); err != nil {
			return err
		}
	}
	if next.size.entries > maxValues || next.size.bytes > maxTotal {
		return ErrFull
	}
	if r.store != nil {
		damage, err := r.store.write(changes, next)
		if err != nil {
			return err
		}
		r.repaired(damage)
	}
	r.root.Store(next)
	return nil
}

// Set sets one value, creating its key.
func (r *Registry) Set(key Path, v Value) error {
	return r.Apply(Change{Kind: SetValue, Key: key, Value: v})
}

// Get returns a value.
func (r *Registry) Get(key Path, name string) (Value, bool) {
	n := r.root.Load().find(key)
	if n == nil {
		return Value{}, false
	}
	v, ok := n.values[fold(name)]
	return v, ok
}

// Key returns the key at p, with names in the case in which they were first written, and whether it
// exists.
func (r *Registry) Key(p Path) (Key, bool) {
	n := r.root.Load()
	var real Path
	for _, name := range p.split() {
		if n = n.children[fold(name)]; n == nil {
			return Key{}, false
		}
		real = real.Child(n.name)
	}
	return n.key(real), true
}

func (n *node) key(at Path) Key {
	k := Key{Path: at, Values: n.sortedValues()}
	for _, c := range n.sortedChildren() {
		k.Subkeys = append(k.Subkeys, at.Child(c.name))
	}
	return k
}

// Walk calls fn for p and every key below it, each before its subkeys, until fn returns false. All are
// from one snapshot. It reports whether p exists.
func (r *Registry) Walk(p Path, fn func(Key) bool) bool {
	k, ok := r.Key(p)
	if !ok {
		return false
	}
	r.root.Load().find(p).walk(k.Path, fn)
	return true
}

func (n *node) walk(at Path, fn func(Key) bool) bool {
	if !fn(n.key(at)) {
		return false
	}
	for _, c := range n.sortedChildren() {
		if !c.walk(at.Child(c.name), fn) {
			return false
		}
	}
	return true
}

// StoreError says that a file could not be opened, read or written.
type StoreError struct {
	Path string
	Err  error
}

func (e *StoreError) Error() string { return fmt.Sprintf("registry file %s: %v", e.Path, e.Err) }
func (e *StoreError) Unwrap() error { return e.Err }

// Detach closes the file and returns a registry in memory with the same contents, which keeps nothing, for
// the given reason.
func (r *Registry) Detach(reason string) *Registry {
	out := &Registry{volatile: reason, lineRate: r.lineRate}
	out.root.Store(r.root.Load())
	_ = r.Close() // it could not be written anyway
	return out
}
