package packet

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// gate is a program at the entrance of an interface (tcx, Linux 6.6) that puts what belongs in the ring into memory
// that it shares with us, and drops what is whole there. The kernel's own ring, which a packet socket fills, takes a
// fifth longer for a frame from one interface to the other, and the system's IP and UDP input, which would bring the
// frame to the filter of the socket, another fifth.
type gate struct {
	id     ebpf.ProgramID
	memory []byte      // the value of its map
	at     uint64      // packets that were taken
	slot   int         // where in memory the next one will be
	gone   bool        // somebody has taken the program away
	opened []io.Closer // the program goes with its link
}

// state is what a gate does.
type state uint64

const (
	shut      state = iota // everything goes on
	copies                 // and the ring has it, or a mark of it, too
	copyDrops              // and what is whole there goes on no more
)

// Where things are in the memory that a gate shares with its program. Who takes writes to other cache lines than the program,
// but for the slots.
const (
	gateState   = 0   // a state
	gateArmed   = 8   // not 0: somebody is about to sleep
	gateHead    = 64  // frames that the program has begun to put into slots
	gateDropped = 72  // frames that it dropped
	gateSlots   = 128 // where the first slot is
	gateRoom    = gateSlots + slots*gateSlot
)

// A slot of a gate. Its turn is the number of the frame that it is free for, and one more when that is there: so neither those
// who put in, of which there may be one on each processor, nor who takes needs to know of the other (as in the
// queue of Vyukov, 1024cores.net).
const (
	gateSlot    = 384 // bytes
	slotTurn    = 0
	slotLength  = 8 // of the frame, up to most
	slotSegment = 12
	slotFrame   = 16
	slotMost    = gateSlot - slotFrame
)

// gateName marks the programs, so that a Port does not take another one's for a filter of the user's.
const gateName = "softvpi_gate"

// openGate attaches a program for what belongs in a rule's ring. It does nothing yet.
func openGate(r Rule) (*gate, error) {
	g := new(gate)
	if err := g.open(r); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *gate) open(r Rule) error {
	program, err := g.load(r)
	if err != nil {
		return err
	}
	info, err := program.Info()
	if err != nil {
		return err
	}
	g.id, _ = info.ID()
	l, err := link.AttachTCX(link.TCXOptions{Interface: r.Interface, Program: program, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return err
	}
	g.opened = append(g.opened, l)
	return nil
}

// load makes the program and what it shares.
func (g *gate) load(r Rule) (*ebpf.Program, error) {
	values, err := ebpf.NewMap(&ebpf.MapSpec{Name: gateName, Type: ebpf.Array, KeySize: 4, ValueSize: gateRoom, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, err
	}
	g.opened = append(g.opened, values)
	g.memory, err = unix.Mmap(values.FD(), 0, gateRoom, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	for i := range uint64(slots) {
		g.word(gateSlots + int(i)*gateSlot + slotTurn).Store(i)
	}
	g.slot = gateSlots
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: gateName, Type: ebpf.SchedCLS, Instructions: gateProgram(r, values), License: "GPL"})
	if err != nil {
		return nil, err
	}
	g.opened = append(g.opened, p)
	return p, nil
}

// word is a number in the memory.
func (g *gate) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&g.memory[at])) }

// set says what the program does. A nil gate does nothing.
func (g *gate) set(s state) {
	if g != nil {
		g.word(gateState).Store(uint64(s))
	}
}

// arm has the program make a frame that wakes of the next one that it would drop, and reports whether nothing has been copied
// that was not taken. Either the program sees that somebody is about to sleep, or who is sees the frame.
func (g *gate) arm() bool {
	g.word(gateArmed).Store(1)
	b, _ := g.peek()
	return b == nil
}

// dropped is how many frames the program dropped.
func (g *gate) dropped() uint64 {
	if g == nil {
		return 0
	}
	return g.word(gateDropped).Load()
}

// own is the program's number in the system; 0 is none's.
func (g *gate) own() ebpf.ProgramID {
	if g == nil {
		return 0
	}
	return g.id
}

// lost reports whether somebody has taken the program away from the interface: the socket's filter would drop what it
// is to receive. As tcxPrograms it asks for the namespace of this thread.
func (g *gate) lost(index int) bool {
	if g == nil || g.gone {
		return false
	}
	there, err := entrancePrograms(index)
	return err == nil && !slices.ContainsFunc(there, func(p link.AttachedProgram) bool { return p.ID == g.id })
}

// peek is as that of a ring.
func (g *gate) peek() (b []byte, segment int) {
	if g.word(g.slot+slotTurn).Load() != g.at+1 {
		return nil, 0
	}
	slot := g.memory[g.slot : g.slot+gateSlot : g.slot+gateSlot]
	n := min(*(*uint32)(unsafe.Pointer(&slot[slotLength])), slotMost)
	return slot[slotFrame : slotFrame+n], int(*(*uint32)(unsafe.Pointer(&slot[slotSegment])))
}

// release gives the slot back.
func (g *gate) release() {
	g.word(g.slot + slotTurn).Store(g.at + slots)
	g.at++
	if g.slot += gateSlot; g.slot == gateRoom {
		g.slot = gateSlots
	}
}

// waiting calls each for the frames that wait.
func (g *gate) waiting(each func(b []byte)) {
	at, slot := g.at, g.slot
	for range slots {
		b, _ := g.peek()
		if b == nil {
			break
		}
		each(b)
		g.at++
		if g.slot += gateSlot; g.slot == gateRoom {
			g.slot = gateSlots
		}
	}
	g.at, g.slot = at, slot
}

func (g *gate) close() {
	if g == nil {
		return
	}
	for _, c := range g.opened {
		_ = c.Close() // nothing is to be done about it
	}
	g.opened = nil
	if g.memory != nil {
		_ = unix.Munmap(g.memory)
		g.memory = nil
	}
}

// isGate reports whether a program of the system is a Port's gate, which takes CAP_SYS_ADMIN.
func isGate(id ebpf.ProgramID) bool {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return false
	}
	defer p.Close()
	info, err := p.Info()
	return err == nil && info.Name == gateName
}

// entrancePrograms are the programs at an interface's entrance, in the network namespace of this thread; none where
// the system knows no such thing (it came with Linux 6.6).
func entrancePrograms(index int) ([]link.AttachedProgram, error) {
	q, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return q.Programs, nil
}
