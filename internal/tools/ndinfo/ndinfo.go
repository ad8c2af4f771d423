// Package ndinfo holds the tools that list: ndinstall, which lists NetworkDirect
// providers, and ndadapterinfo, which shows the limits of an adapter.
package ndinfo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
)

// Install runs ndinstall.
func Install(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, fmt.Sprintf("usage: %s [-l]\nLists the NetworkDirect providers of this machine and their addresses.", env.Name))
	var install, remove bool
	f.Bool("l", true, "list the providers (default)")
	f.BoolVar(&install, "i", false, "install a provider: refused, because the provider is part of every program that uses it")
	f.BoolVar(&remove, "r", false, "remove a provider: also refused")
	var mode session.Mode
	mode.Flag(f)
	if status, done := f.Parse(); done {
		return status
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	if install || remove {
		return f.Refuse(errors.New("-i and -r are not needed here: the provider is part of every program that uses it; allowed: -l"))
	}
	if err := list(ctx, env.Stdout, mode); err != nil {
		return env.Fail(err)
	}
	return tool.Success
}

func list(ctx context.Context, w io.Writer, mode session.Mode) (err error) {
	p, err := session.Open(ctx, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	addrs, err := p.QueryAddressList()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "0000000001 SoftVPI NetworkDirect v2 provider (%s)\n", p.Host().Mode())
	for _, a := range addrs {
		d, err := p.Host().DeviceByAddr(a)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "           %-16s %s\n", d.Name(), a)
	}
	return nil
}

// AdapterInfo runs ndadapterinfo.
func AdapterInfo(ctx context.Context, env tool.Env) int {
	f := tool.NewFlags(env, fmt.Sprintf("usage: %s [ADDRESS]\nShows what the adapter at ADDRESS can do (ND2_ADAPTER_INFO); without one, every adapter.", env.Name))
	var mode session.Mode
	mode.Flag(f)
	if status, done := f.Parse(); done {
		return status
	}
	var addr netip.Addr
	var err error
	switch f.NArg() {
	case 0:
	case 1:
		addr, err = tool.ParseAddr(f.Arg(0))
	default:
		err = tool.Usagef("%d arguments; allowed: none, or one ADDRESS of an adapter", f.NArg())
	}
	if err != nil {
		return f.Refuse(err)
	}
	if err := show(ctx, env.Stdout, mode, addr); err != nil {
		return env.Fail(err)
	}
	return tool.Success
}

func show(ctx context.Context, w io.Writer, mode session.Mode, addr netip.Addr) (err error) {
	if addr.IsValid() {
		s, err := session.Serve(ctx, mode, addr)
		if err != nil {
			return err
		}
		return errors.Join(showAdapter(w, s.Adapter), s.Close())
	}
	p, err := session.Open(ctx, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	devices, err := p.Host().Devices(ctx)
	if err != nil {
		return err
	}
	for i, d := range devices {
		if i > 0 {
			fmt.Fprintln(w)
		}
		a, err := p.OpenAdapterAt(d.Addr())
		if err != nil {
			return err
		}
		if err := errors.Join(showAdapter(w, a), a.Close()); err != nil {
			return err
		}
	}
	return nil
}

func showAdapter(w io.Writer, a *nd.Adapter) error {
	i, err := a.Query()
	if err != nil {
		return err
	}
	addrs, err := a.QueryAddressList()
	if err != nil {
		return err
	}
	f, err := a.Device().Firmware()
	if err != nil {
		return err
	}
	state := "down"
	if i.Up {
		state = "up"
	}
	if i.MaxTransferLength == 0 {
		state += ", no RDMA: the registry key *NetworkDirect is 0"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		value any
	}{
		{"Name", i.Name}, {"State", state}, {"Mode", i.Mode}, {"Addresses", strings.Trim(fmt.Sprint(addrs), "[]")},
		{"FirmwareVersion", cmp.Or(f.Version, "not told by this driver")}, {"BoardId", cmp.Or(f.Board, "none")},
		{"InfoVersion", fmt.Sprintf("%#x", i.InfoVersion)}, {"VendorId", fmt.Sprintf("%#04x", i.VendorID)},
		{"DeviceId", fmt.Sprintf("%#04x", i.DeviceID)}, {"AdapterId", fmt.Sprintf("%#016x", i.AdapterID)},
		{"MaxRegistrationSize", i.MaxRegistrationSize}, {"MaxWindowSize", i.MaxWindowSize},
		{"MaxInitiatorSge", i.MaxInitiatorSGE}, {"MaxReceiveSge", i.MaxReceiveSGE}, {"MaxReadSge", i.MaxReadSGE},
		{"MaxTransferLength", i.MaxTransferLength}, {"MaxInlineDataSize", i.MaxInlineDataSize},
		{"MaxInboundReadLimit", i.MaxInboundReadLimit}, {"MaxOutboundReadLimit", i.MaxOutboundReadLimit},
		{"MaxReceiveQueueDepth", i.MaxReceiveQueueDepth}, {"MaxInitiatorQueueDepth", i.MaxInitiatorQueueDepth},
		{"MaxSharedReceiveQueueDepth", i.MaxSharedReceiveQueueDepth}, {"MaxCompletionQueueDepth", i.MaxCompletionQueueDepth},
		{"InlineRequestThreshold", i.InlineRequestThreshold}, {"LargeRequestThreshold", i.LargeRequestThreshold},
		{"MaxCallerData", i.MaxCallerData}, {"MaxCalleeData", i.MaxCalleeData},
		{"AdapterFlags", flags(i.Flags)},
	} {
		fmt.Fprintf(t, "%s\t%v\n", row.name, row.value)
	}
	return t.Flush()
}

// flags returns the number and the names of the flags.
func flags(f nd.AdapterFlags) string {
	s := fmt.Sprintf("%#x", uint32(f))
	for _, n := range []struct {
		bit  nd.AdapterFlags
		name string
	}{
		{nd.AdapterFlagInOrderDMA, "IN_ORDER_DMA"}, {nd.AdapterFlagCQInterruptModeration, "CQ_INTERRUPT_MODERATION"},
		{nd.AdapterFlagMultiEngine, "MULTI_ENGINE"}, {nd.AdapterFlagCQResize, "CQ_RESIZE"},
		{nd.AdapterFlagLoopbackConnections, "LOOPBACK_CONNECTIONS"},
	} {
		if f&n.bit != 0 {
			s += " " + n.name
		}
	}
	return s
}
