package packet

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/cpu/release"
)

// Intake is memory in which two programs in the system, one behind the other on a packet's way, put the short packets
// for a UDP socket: the gate at the ingress of the interface, and the filter of the socket itself. What one of them has
// put there it drops, and all else goes on, so that each packet arrives in one way: the first program that takes it, or
// the socket's queue.
//
// They take a packet only if everything that came before it has been handed out: nothing is on its way from the gate to
// the filter on this processor (a flight), and the receiver has handed out as many messages of the socket as the filter
// let through. Whatever is in memory is therefore older than what is at the socket, and comes first. That also makes
// changes harmless: a gate that comes or goes, memory that is full, and a receiver that sleeps (and wants what comes
// next at the socket, which wakes it) only change who takes the next packet.
//
// Packets that the system drops behind the gate or the filter are missing in these counts; until Tend has found that
// out, short packets take the socket. It goes by time: a packet that is on its way for longer, because its processor
// stands still, may be overtaken, which is the one case left in which order is lost.
type Intake struct {
	rule   Rule
	memory []byte
	at     uint64 // slots taken so far
	slot   int    // offset in memory of the next one
	freed  uint64 // slots given back
	handed uint64 // messages of the socket that were handed out
	asleep bool   // the programs take nothing until Woken
	off    bool   // the programs take nothing any more
	lag    drift  // of messages
	flown  [processors]drift
	tended time.Time

	filter *ebpf.Program
	gate   *gate // nil: there may be none
}

// Layout of the memory. Each line of the processor's caches is written by one side only; the receiver polls the next
// slot and the number of messages, which short packets do not change.
const (
	lineSize = 64

	takenAt = 0 // the receiver's: messages handed out; negative: it wants everything at the socket
	openAt  = 8 // the receiver's: not 0: the gate may take packets

	headAt     = lineSize     // slots claimed
	filteredAt = lineSize + 8 // packets that the filter took

	queuedAt = 2 * lineSize // messages that the filter let through

	flightsAt  = 3 * lineSize // packets that passed the gate less those that came to the filter, of each processor
	processors = 16           // modulo which processors are counted

	slotsAt = flightsAt + processors*lineSize
	slots   = 256
	room    = slotsAt + slots*slotSize
)

// Layout of a slot. Its turn is the number of the packet for which the slot is free, plus one once that packet is there,
// so that the programs, which each processor may run at a time, and the receiver need no other coordination (the bounded
// queue of Vyukov, 1024cores.net).
const (
	slotSize    = 3392 // the headers and MostTaken, in whole lines
	slotTurn    = 0
	slotLength  = 8 // of the packet; 0: the packet went on
	slotSegment = 12
	slotPacket  = 16 // from its IP header on
)

// openIntake makes the memory and the filter for a rule. Where a gate may be, the filter counts what passes it.
func openIntake(r Rule, gated bool) (*Intake, error) {
	values, err := ebpf.NewMap(&ebpf.MapSpec{Name: gateName, Type: ebpf.Array, KeySize: 4, ValueSize: room, MaxEntries: 1,
		Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, err
	}
	defer values.Close() // the programs keep it
	i := &Intake{rule: r, slot: slotsAt, lag: newDrift()}
	for k := range i.flown {
		i.flown[k] = newDrift()
	}
	memory, err := unix.Mmap(values.FD(), 0, room, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	i.memory = memory
	// Packets that were handed out last may be looked at after Close.
	runtime.AddCleanup(i, func(m []byte) { _ = unix.Munmap(m) }, memory)
	for k := range uint64(slots) {
		i.word(slotsAt + int(k)*slotSize + slotTurn).Store(k)
	}
	if i.filter, err = loadProgram("softvpi_filter", ebpf.SocketFilter, filterProgram(r, values, gated)); err != nil {
		return nil, err
	}
	if gated {
		program, err := loadProgram(gateName, ebpf.SchedCLS, gateProgram(r, values))
		if err != nil {
			i.close()
			return nil, err
		}
		i.gate = &gate{program: program}
	}
	return i, nil
}

// Attach makes the Intake's filter that of the UDP socket with the rule's address and port. The socket must not be bound
// yet, so that nothing comes to it uncounted.
func (i *Intake) Attach(socket int) error {
	err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, i.filter.FD())
	return os.NewSyscallError("setsockopt SO_ATTACH_BPF", err)
}

func (i *Intake) close() {
	i.gate.close()
	if i.filter != nil {
		_ = i.filter.Close() // the socket keeps it
	}
}

// word returns the 64-bit number at an offset of the memory.
func (i *Intake) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&i.memory[at])) }

// Next decodes the next short packet into d and returns true, or false if there is none. The data of d is valid until
// Free.
func (i *Intake) Next(d *Datagram) bool {
	for i.word(i.slot+slotTurn).Load() == i.at+1 {
		slot := i.memory[i.slot : i.slot+slotSize : i.slot+slotSize]
		i.at++
		if i.slot += slotSize; i.slot == room {
			i.slot = slotsAt
		}
		n := min(*(*uint32)(unsafe.Pointer(&slot[slotLength])), slotSize-slotPacket)
		if d.parse(slot[slotPacket:slotPacket+n:slotPacket+n], i.rule.Addr, i.rule.Port) {
			d.Segment = int(*(*uint32)(unsafe.Pointer(&slot[slotSegment])))
			return true
		}
	}
	return false
}

// Free gives the memory of the packets returned so far back to the programs.
func (i *Intake) Free() {
	for ; i.freed != i.at; i.freed++ {
		slot := slotsAt + int(i.freed%slots)*slotSize
		// A program reads the turn before it fills the slot again, so later loads need not wait for this store.
		release.Store64((*uint64)(unsafe.Pointer(&i.memory[slot+slotTurn])), i.freed+slots)
	}
}

// Coming reports whether a program has begun to put a packet into memory that Next does not return yet. It came before
// the messages received from the socket until then.
func (i *Intake) Coming() bool { return i.word(headAt).Load() != i.at }

// Messages returns how many messages are at the socket, or will be in a moment. If the socket is empty nevertheless, call
// Missing.
func (i *Intake) Messages() int {
	n := int(i.word(queuedAt).Load() - i.handed)
	if n == 0 && i.lag.times > 0 {
		i.lag = newDrift() // nothing is missing
	}
	return n
}

// Handed says that n more messages of the socket have been handed out, all that had been received.
func (i *Intake) Handed(n int) {
	// More than were let through cannot have been: then one counted as lost that was only late.
	i.handed = min(i.handed+uint64(n), i.word(queuedAt).Load())
	if i.off || i.asleep {
		return
	}
	release.Store64((*uint64)(unsafe.Pointer(&i.memory[takenAt])), i.handed)
}

// Woken ends a sleep, and reports whether there was one.
func (i *Intake) Woken() bool {
	if !i.asleep {
		return false
	}
	i.asleep = false
	i.Handed(0)
	return true
}

// Sleep makes everything that comes from now on come to the socket, until Woken. It returns false if a packet
// is in memory, or will be in a moment: the receiver must not sleep then.
func (i *Intake) Sleep() bool {
	i.asleep = true
	i.word(takenAt).Store(math.MaxUint64)
	return !i.Coming() // either the program sees that the receiver sleeps, or the receiver that there is a packet
}

// Stop makes everything that comes from now on come to the socket.
func (i *Intake) Stop() {
	i.off = true
	i.word(takenAt).Store(math.MaxUint64)
}

// open lets the gate take packets, or not.
func (i *Intake) open(may bool) {
	is := uint64(0)
	if may {
		is = 1
	}
	i.word(openAt).Store(is)
}

// Filtered returns how many packets the filter has taken, which the system counts as dropped by the socket.
func (i *Intake) Filtered() uint64 { return i.word(filteredAt).Load() }

// Missing says that the socket was empty although Messages had returned n.
func (i *Intake) Missing(n int) { i.lag.see(n) }

// Tend corrects the counts for packets that were lost after they were counted. Call it every few milliseconds, or more
// often.
func (i *Intake) Tend(now time.Time) {
	if now.Sub(i.tended) < tendTime {
		return
	}
	i.tended = now
	if n := i.lag.settle(); n != 0 {
		i.Handed(n)
	}
	if i.gate == nil {
		return
	}
	for k := range i.flown {
		flight := i.word(flightsAt + k*lineSize)
		i.flown[k].see(int(int64(flight.Load())))
		if n := i.flown[k].settle(); n != 0 {
			flight.Add(uint64(int64(-n)))
		}
	}
}

// drift finds what is missing for good in a difference of two counts, the second of which follows the first: the least
// of what was seen at many times.
type drift struct {
	least int
	times int // that it was seen
	tends int // calls of settle since then
}

// A difference counts after it was seen so many times, over at least the time between two looks of Tend, which is longer
// than a packet is on its way.
const (
	driftTimes = 32
	driftTends = 2
	tendTime   = time.Millisecond
)

func newDrift() drift { return drift{least: math.MaxInt} }

func (d *drift) see(n int) {
	d.least = min(d.least, n)
	d.times++
}

// settle returns what is missing, 0 if nothing is or it is too early to say.
func (d *drift) settle() int {
	if d.times > 0 {
		d.tends++
	}
	if d.times < driftTimes || d.tends < driftTends {
		return 0
	}
	n := d.least
	*d = newDrift()
	return n
}

// loadProgram loads a program into the system.
func loadProgram(name string, kind ebpf.ProgramType, code instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: kind, Instructions: code, License: "GPL"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
