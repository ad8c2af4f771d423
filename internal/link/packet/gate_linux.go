package packet

import (
	"errors"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// gate is the program of an Intake at the ingress of an interface (tcx, Linux 6.6). The system's IP and UDP input, up to
// the UDP socket's filter, costs a fifth of a frame's way from one interface to another. If somebody detaches the program,
// the filter takes the packets.
type gate struct {
	program *ebpf.Program
	tried   bool           // it was attached, or the system refused
	id      ebpf.ProgramID // in the system; 0: it was not attached
	link    io.Closer      // closing it detaches the program
}

// gateName marks the programs, so that one Port does not mistake another's for a user's filter.
const gateName = "softvpi_gate"

// attach attaches the program to an interface of this thread's network namespace.
func (g *gate) attach(index int) error {
	g.tried = true
	info, err := g.program.Info()
	if err != nil {
		return err
	}
	g.id, _ = info.ID()
	g.link, err = link.AttachTCX(link.TCXOptions{Interface: index, Program: g.program, Attach: ebpf.AttachTCXIngress})
	return err
}

func (g *gate) close() {
	if g == nil {
		return
	}
	if g.link != nil {
		_ = g.link.Close()
		g.link = nil
	}
	_ = g.program.Close()
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
