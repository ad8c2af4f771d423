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

	"github.com/softvpi/softvpi/internal/cpu/release"
)

// gate is a program at the ingress of an interface (tcx, Linux 6.6) that copies the packets of a Rule into memory
// shared with this process, and drops those it has copied completely. Receiving through a packet socket and its ring
// costs a fifth of a frame's way from one interface to another; the system's IP and UDP input, up to the UDP socket's
// filter, costs another fifth.
type gate struct {
	id     ebpf.ProgramID
	memory []byte      // the value of its map
	at     uint64      // packets taken so far
	slot   int         // offset in memory of the next one
	gone   bool        // somebody else has detached the program
	opened []io.Closer // closing the link detaches the program
}

// state is what a gate does with the packets of its Rule.
type state uint64

const (
	shut      state = iota // it lets them pass
	copies                 // it copies them, or a mark of them, and lets them pass
	copyDrops              // it copies them, or a mark, and drops those copied completely
)

// Offsets in the memory that a gate shares with its program. Except for the slots, the consumer and the program write
// to different cache lines.
const (
	gateState   = 0   // a state
	gateArmed   = 8   // not 0: the consumer is about to sleep
	gateHead    = 64  // number of slots the program has claimed
	gateDropped = 72  // number of frames it dropped
	gateSlots   = 128 // the first slot
	gateRoom    = gateSlots + slots*gateSlot
)

// Layout of a slot. Its turn is the number of the frame for which the slot is free, plus one once that frame is there,
// so that the producers, of which each processor may have one, and the consumer need no other coordination (the bounded
// queue of Vyukov, 1024cores.net).
const (
	gateSlot    = 384 // bytes
	slotTurn    = 0
	slotLength  = 8 // of the frame, up to slotMost
	slotSegment = 12
	slotFrame   = 16
	slotMost    = gateSlot - slotFrame
)

// gateName marks the programs, so that one Port does not mistake another's for a user's filter.
const gateName = "softvpi_gate"

// openGate attaches a program for the packets of a rule. It is shut at first.
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

// load creates the program and the memory that it shares.
func (g *gate) load(r Rule) (*ebpf.Program, error) {
	values, err := ebpf.NewMap(&ebpf.MapSpec{Name: gateName, Type: ebpf.Array, KeySize: 4, ValueSize: gateRoom, MaxEntries: 1,
		Flags: unix.BPF_F_MMAPABLE})
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

// word returns the 64-bit number at an offset of the memory.
func (g *gate) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&g.memory[at])) }

// set tells the program what to do. A nil gate does nothing.
func (g *gate) set(s state) {
	if g != nil {
		g.word(gateState).Store(uint64(s))
	}
}

// arm makes the program send the next frame that it would drop in again, as one that wakes the consumer. It reports
// whether no copied frame is waiting: either the program sees that the consumer is about to sleep, or the consumer sees
// the frame.
func (g *gate) arm() bool {
	g.word(gateArmed).Store(1)
	b, _ := g.peek()
	return b == nil
}

// dropped returns the number of frames that the program dropped.
func (g *gate) dropped() uint64 {
	if g == nil {
		return 0
	}
	return g.word(gateDropped).Load()
}

// own returns the program's id in the system; 0 is never used.
func (g *gate) own() ebpf.ProgramID {
	if g == nil {
		return 0
	}
	return g.id
}

// lost reports whether somebody else has detached the program from the interface: the packets would then be lost, as
// the UDP socket's filter drops them. Like entrancePrograms it asks in the network namespace of this thread.
func (g *gate) lost(index int) bool {
	if g == nil || g.gone {
		return false
	}
	there, err := entrancePrograms(index)
	return err == nil && !slices.ContainsFunc(there, func(p link.AttachedProgram) bool { return p.ID == g.id })
}

// peek implements source.
func (g *gate) peek() (b []byte, segment int) {
	if g.word(g.slot+slotTurn).Load() != g.at+1 {
		return nil, 0
	}
	slot := g.memory[g.slot : g.slot+gateSlot : g.slot+gateSlot]
	n := min(*(*uint32)(unsafe.Pointer(&slot[slotLength])), slotMost)
	return slot[slotFrame : slotFrame+n], int(*(*uint32)(unsafe.Pointer(&slot[slotSegment])))
}

// release implements source.
func (g *gate) release() {
	// The program reads the turn before it fills the slot again, so later loads need not wait for this store.
	release.Store64((*uint64)(unsafe.Pointer(&g.memory[g.slot+slotTurn])), g.at+slots)
	g.at++
	if g.slot += gateSlot; g.slot == gateRoom {
		g.slot = gateSlots
	}
}

// waiting implements source.
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

// isGate reports whether a program of the system is a Port's gate, which requires CAP_SYS_ADMIN.
func isGate(id ebpf.ProgramID) bool {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return false
	}
	defer p.Close()
	info, err := p.Info()
	return err == nil && info.Name == gateName
}

// entrancePrograms returns the programs at an interface's ingress, in the network namespace of this thread; none if the
// system does not support them (they came with Linux 6.6).
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
