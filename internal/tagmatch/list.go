package tagmatch

import (
	"errors"

	"github.com/softvpi/softvpi/internal/ring"
)

const (
	// MaxTags limits the entries of a list: the oldest that matches is searched for one after the other.
	MaxTags = 1024
	// MaxSGE limits the pieces of memory of a tagged buffer.
	MaxSGE = 4
)

// ErrFull says that a list has all the entries that it may have.
var ErrFull = errors.New("the matching list is full")

// Entry is a tagged buffer.
type Entry struct {
	// ID names the buffer in completions.
	ID uint64
	// A message matches if its tag has the bits of Mask as Tag has them all: tag & Mask == Tag.
	Tag, Mask uint64
	NumSGE    uint8
	SGE       [MaxSGE]ring.SGE
}

// Room returns the number of bytes that the buffer takes.
func (e *Entry) Room() (n uint64) {
	for _, s := range e.SGE[:e.NumSGE] {
		n += uint64(s.Length)
	}
	return n
}

// node is what of an entry in the list, or of a place for one, the search looks at: two of them are a cache line.
type node struct {
	tag, mask  uint64
	prev, next uint32 // indices in nodes
	handle     uint32 // of the entry; 0: free
}

// List is the tagged buffers of a shared receive queue, oldest first. Index 0 of nodes is the ring's head.
//
// A message that nobody waits for is unexpected: the program looks for its receive itself. Until it says that it has dealt
// with as many unexpected messages as there were (Sync), it might still find one for a buffer that it is adding, so such
// buffers match nothing before: otherwise a later message would overtake the earlier one.
type List struct {
	nodes      []node
	entries    []Entry // of the nodes
	free       []uint32
	max, count int
	held       uint32 // the oldest entry that matches nothing yet; 0: none
	serial     uint32
	unexpected uint32 // messages so far
	behind     bool   // the program has not yet dealt with all of them
}

// New returns a list of at most max entries, 1 to MaxTags.
func New(max int) *List { return &List{nodes: make([]node, 1), entries: make([]Entry, 1), max: max} }

// Len returns the number of entries.
func (l *List) Len() int { return l.count }

// InSync reports whether the program has dealt with every unexpected message.
func (l *List) InSync() bool { return !l.behind }

// Sync takes note of how many unexpected messages, modulo 2^32, the program has dealt with.
func (l *List) Sync(count uint32) {
	if l.behind = count != l.unexpected; !l.behind {
		l.held = 0
	}
}

// Unexpected counts a message with a tag that was not matched.
func (l *List) Unexpected() { l.unexpected, l.behind = l.unexpected+1, true }

// indexBits is how many bits of a handle are the index of its node.
const indexBits = 11

// Add adds a buffer and returns its handle, which is not 0. The error is ErrFull.
func (l *List) Add(e *Entry) (handle uint32, err error) {
	if l.count >= l.max {
		return 0, ErrFull
	}
	i := uint32(len(l.nodes))
	if n := len(l.free); n > 0 {
		i, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.nodes, l.entries = append(l.nodes, node{}), append(l.entries, Entry{})
	}
	l.serial++
	last := l.nodes[0].prev
	l.nodes[i] = node{tag: e.Tag, mask: e.Mask, handle: l.serial<<indexBits | i, prev: last}
	l.entries[i] = *e
	l.nodes[last].next, l.nodes[0].prev = i, i
	if l.count++; l.held == 0 && !l.InSync() {
		l.held = i
	}
	return l.nodes[i].handle, nil
}

// Remove removes a buffer. It returns false if there is none with this handle: a message may have taken it.
func (l *List) Remove(handle uint32) bool {
	i := handle & (1<<indexBits - 1)
	if i == 0 || i >= uint32(len(l.nodes)) || l.nodes[i].handle != handle {
		return false
	}
	l.unlink(i)
	return true
}

// Match takes the oldest buffer that a message with a tag matches. The result is nil if there is none; it is valid until the
// list changes.
func (l *List) Match(tag uint64) *Entry {
	i := l.find(tag)
	if i == 0 {
		return nil
	}
	l.unlink(i)
	return &l.entries[i]
}

// Matches reports whether a message with a tag matches a buffer.
func (l *List) Matches(tag uint64) bool { return l.find(tag) != 0 }

// find returns the index of the oldest buffer that a tag matches; 0: there is none.
func (l *List) find(tag uint64) uint32 {
	for i := l.nodes[0].next; i != 0 && i != l.held; i = l.nodes[i].next {
		if n := &l.nodes[i]; tag&n.mask == n.tag {
			return i
		}
	}
	return 0
}

func (l *List) unlink(i uint32) {
	n := &l.nodes[i]
	if l.held == i {
		l.held = n.next
	}
	l.nodes[n.prev].next, l.nodes[n.next].prev = n.next, n.prev
	n.handle = 0
	l.free = append(l.free, i)
	l.count--
}
