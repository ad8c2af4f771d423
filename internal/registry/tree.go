package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	maxData   = 1 << 20  // bytes of one value, as Windows recommends as its limit
	maxTotal  = 64 << 20 // bytes of all values and names
	maxValues = 1 << 17  // values and keys together
)

// ErrNotFound says that a key or value does not exist.
var ErrNotFound = errors.New("the system was unable to find the specified registry key or value")

// ErrFull says that a registry has reached its limits.
var ErrFull = fmt.Errorf("the registry is full; allowed: %d keys and values of %d bytes in all", maxValues, maxTotal)

// node is a key. Nodes do not change once a tree that contains them is published.
type node struct {
	name     string
	values   map[string]Value // by folded name
	children map[string]*node // by folded name
	size     size             // of the node and everything below it
	batch    *batch           // the batch that may still modify it in place
	// processors of the machine, in the root only; 0: those of this machine.
	processors int
}

// batch identifies one Apply: nodes that it has already copied need not be copied again.
type batch struct{ _ byte }

// size measures a subtree.
type size struct{ entries, bytes int }

func (s size) plus(o size) size  { return size{s.entries + o.entries, s.bytes + o.bytes} }
func (s size) minus(o size) size { return size{s.entries - o.entries, s.bytes - o.bytes} }

func valueSize(v Value) size { return size{1, 2*len(v.Name) + len(v.Data)} }

// writable returns n itself if the batch has created it, otherwise a copy.
func (n *node) writable(b *batch) *node {
	if n.batch == b {
		return n
	}
	c := *n
	c.batch = b
	c.values, c.children = maps.Clone(n.values), maps.Clone(n.children)
	return &c
}

// find returns the key at p.
func (n *node) find(p Path) *node {
	for _, name := range p.split() {
		if n = n.children[fold(name)]; n == nil {
			return nil
		}
	}
	return n
}

// with returns the tree in which edit has changed the key at p. If the key does not exist it is created
// or, with create false, nothing changes.
func (n *node) with(b *batch, names []string, create bool, edit func(*node)) *node {
	c := n.writable(b)
	if len(names) == 0 {
		edit(c)
		return c
	}
	if c.children == nil {
		c.children = map[string]*node{}
	}
	at := fold(names[0])
	child := c.children[at]
	if child == nil {
		if !create {
			return n
		}
		child = &node{name: names[0], size: size{1, 2 * len(names[0])}, batch: b}
	} else {
		c.size = c.size.minus(child.size)
	}
	child = child.with(b, names[1:], create, edit)
	c.children[at] = child
	c.size = c.size.plus(child.size)
	return c
}

func (n *node) set(v Value) {
	if n.values == nil {
		n.values = map[string]Value{}
	}
	at := fold(v.Name)
	if old, ok := n.values[at]; ok {
		v.Name = old.Name // the case first written is kept
		n.size = n.size.minus(valueSize(old))
	}
	n.values[at] = v
	n.size = n.size.plus(valueSize(v))
}

func (n *node) unset(folded string) {
	if old, ok := n.values[folded]; ok {
		n.size = n.size.minus(valueSize(old))
		delete(n.values, folded)
	}
}

func (n *node) drop(folded string) {
	if old, ok := n.children[folded]; ok {
		n.size = n.size.minus(old.size)
		delete(n.children, folded)
	}
}

// sortedValues returns the values sorted by name.
func (n *node) sortedValues() []Value {
	out := make([]Value, 0, len(n.values))
	for _, at := range slices.Sorted(maps.Keys(n.values)) {
		out = append(out, n.values[at])
	}
	return out
}

// sortedChildren returns the keys below n sorted by name.
func (n *node) sortedChildren() []*node {
	out := make([]*node, 0, len(n.children))
	for _, at := range slices.Sorted(maps.Keys(n.children)) {
		out = append(out, n.children[at])
	}
	return out
}
