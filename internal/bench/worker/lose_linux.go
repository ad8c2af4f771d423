package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// lose makes the system lose packets at random where they arrive at the interfaces of these addresses,
// each with this probability, until the process ends or stop is called. It needs Linux 6.6 and root.
func lose(probability float64, addrs ...netip.Addr) (stop func() error, err error) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: lossProgram(probability), License: "GPL"})
	if err != nil {
		return nil, err
	}
	opened := []io.Closer{program}
	stop = func() error {
		var errs []error
		for _, c := range opened {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	for _, a := range addrs {
		l, err := attachLoss(program, a)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		opened = append(opened, l)
	}
	return stop, nil
}

// What the program returns (include/uapi/linux/bpf.h, enum tcx_action_base).
const tcxNext, tcxDrop = -1, 2

func lossProgram(probability float64) asm.Instructions {
	const lost = "lost"
	return asm.Instructions{
		asm.FnGetPrandomU32.Call(),
		asm.JLT.Imm32(asm.R0, int32(uint32(min(probability, 1)*(1<<32-1))), lost),
		asm.Mov.Imm(asm.R0, tcxNext),
		asm.Return(),
		asm.Mov.Imm(asm.R0, tcxDrop).WithSymbol(lost),
		asm.Return(),
	}
}

func attachLoss(program *ebpf.Program, addr netip.Addr) (link.Link, error) {
	i, err := interfaceOf(addr)
	if err != nil {
		return nil, err
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: i.Index, Program: program, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return nil, fmt.Errorf("losing packets on %s: %w", i.Name, err)
	}
	return l, nil
}

func interfaceOf(addr netip.Addr) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range all {
		own, err := all[i].Addrs()
		if err != nil {
			return nil, err
		}
		for _, o := range own {
			if p, err := netip.ParsePrefix(o.String()); err == nil && p.Addr() == addr {
				return &all[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no interface has the address %v", addr)
}
