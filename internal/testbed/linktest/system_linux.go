package linktest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// What a program at an interface's ingress does with all packets (linux/bpf.h, enum tcx_action_base).
const (
	Pass = -1
	Drop = 2
)

// Ingress attaches a program that does what with all packets to the ingress of an interface of this thread's network
// namespace (tcx, Linux 6.6), until the result is closed.
func Ingress(name string, what int32) (link.Link, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, what), asm.Return()}})
	if err != nil {
		return nil, err
	}
	defer program.Close()
	return link.AttachTCX(link.TCXOptions{Interface: l.Attrs().Index, Program: program, Attach: ebpf.AttachTCXIngress})
}

// Chain makes an nftables table of family inet in this network namespace, with a chain at a hook and, if rule is
// set, a rule in it that matches everything and does nothing.
func Chain(name string, hook *nftables.ChainHook, rule bool) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	chain := conn.AddChain(&nftables.Chain{Name: "c", Table: conn.AddTable(&nftables.Table{Name: name, Family: nftables.TableFamilyINet}),
		Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter})
	if rule {
		conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain})
	}
	return conn.Flush()
}
