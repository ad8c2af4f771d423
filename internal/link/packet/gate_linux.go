package packet

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// gate is a program at the ingress of an interface (tcx, Linux 6.6) that drops what is completely in the
// ring, right after the ring. Without it the socket's filter drops it, after the system's IP and UDP
// input: a fifth of the time that a frame takes from one interface to the other.
type gate struct {
	id     ebpf.ProgramID
	state  *ebpf.Memory // shared with the program
	opened []io.Closer  // closing the link detaches the program
}

// What a gate shares with its program: two 64-bit numbers.
const (
	gateOpen    = 0 // offset: not 0 makes the program drop
	gateDropped = 8 // offset: how many frames it dropped
	gateState   = 16
)

// gateName marks the programs, so that one Port does not mistake another's for a user's filter.
const gateName = "softvpi_gate"

// openGate attaches a program for what a rule's ring has completely. It does not drop yet.
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

// load creates the program and what it shares.
func (g *gate) load(r Rule) (*ebpf.Program, error) {
	values, err := ebpf.NewMap(&ebpf.MapSpec{Name: gateName, Type: ebpf.Array, KeySize: 4, ValueSize: gateState, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, err
	}
	g.opened = append(g.opened, values)
	if g.state, err = values.Memory(); err != nil {
		return nil, err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: gateName, Type: ebpf.SchedCLS, Instructions: gateProgram(r, values), License: "GPL"})
	if err != nil {
		return nil, err
	}
	g.opened = append(g.opened, p)
	return p, nil
}

// set says whether the program drops. A nil gate drops nothing.
func (g *gate) set(open bool) {
	if g == nil {
		return
	}
	var b [8]byte
	if open {
		binary.NativeEndian.PutUint64(b[:], 1)
	}
	_, _ = g.state.WriteAt(b[:], gateOpen) // cannot fail: it is in memory
}

// dropped returns how many frames the program dropped.
func (g *gate) dropped() uint64 {
	if g == nil {
		return 0
	}
	var b [8]byte
	_, _ = g.state.ReadAt(b[:], gateDropped) // cannot fail: it is in memory
	return binary.NativeEndian.Uint64(b[:])
}

// own returns the program's id in the system; 0 is never used.
func (g *gate) own() ebpf.ProgramID {
	if g == nil {
		return 0
	}
	return g.id
}

func (g *gate) close() {
	if g == nil {
		return
	}
	for _, c := range g.opened {
		_ = c.Close() // nothing is to be done about it
	}
	g.opened = nil
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

// entrancePrograms returns the programs at an interface's ingress, in the network namespace of this
// thread; none if the system does not support them (they came with Linux 6.6).
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
