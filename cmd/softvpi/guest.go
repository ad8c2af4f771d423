package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"

	"github.com/softvpi/softvpi/internal/guest"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/peer"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type guestCmd struct {
	Serve  guestServeCmd  `cmd:"" help:"On the host: give the programs of a virtual machine a virtual function, by a stream to it, until it is stopped."`
	Attach guestAttachCmd `cmd:"" help:"In a virtual machine: offer programs the host's driver at a socket, by the stream that the host serves, until it is stopped."`
}

// guestFlags are what both sides take.
type guestFlags struct {
	socketFlag `embed:""`
	Verbose    bool `short:"v" help:"Print what happens."`
}

func (f guestFlags) logger(w io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if f.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

func audience(option, name string) (peer.Audience, error) {
	who, ok := peer.ParseAudience(name)
	if !ok {
		return who, tool.Usagef("--%s is %q; allowed: %s", option, name, peer.Audiences)
	}
	return who, nil
}

type guestServeCmd struct {
	guestFlags `embed:""`
	Listen     string `required:"" help:"Where the machine comes: unix:PATH, the socket that QEMU's -chardev socket connects to, or vsock:CID:PORT with the machine's CID."`
	Machines   string `default:"owner" help:"Who may connect to that unix socket: owner, group, everyone."`
	VF         string `arg:"" name:"vf" help:"Name of the virtual function that the machine's programs are to have: they see that alone."`
}

// Run serves.
func (c guestServeCmd) Run(s *session) error {
	at, err := guest.ParseListen(c.Listen)
	if err != nil {
		return tool.Usagef("--%v", err)
	}
	who, err := audience("machines", c.Machines)
	if err != nil {
		return err
	}
	socket := paths.Function(cmp.Or(c.Socket, paths.Socket()), c.VF)
	return guest.Serve(s.ctx, guest.ServeConfig{Socket: socket, Listen: at, Admitted: who, Log: c.logger(s.env.Stderr), Listens: func() {
		fmt.Fprintf(s.env.Stdout, "waiting for a machine at %v\n", at)
	}})
}

type guestAttachCmd struct {
	guestFlags `embed:""`
	Programs   string `default:"owner" help:"Whose programs may attach: owner, group, everyone."`
	Host       string `arg:"" help:"Where the host's side is: device:PATH, a port of virtio-serial as /dev/virtio-ports/NAME, vsock:PORT, or unix:PATH."`
}

// Run serves programs.
func (c guestAttachCmd) Run(s *session) error {
	at, err := guest.ParseHost(c.Host)
	if err != nil {
		return tool.Usagef("%v", err)
	}
	who, err := audience("programs", c.Programs)
	if err != nil {
		return err
	}
	socket := cmp.Or(c.Socket, paths.Socket())
	return guest.Attach(s.ctx, guest.AttachConfig{
		Host: at, Socket: socket, Audience: who, Driver: "softvpi " + version(), Log: c.logger(s.env.Stderr),
		Attached: func() { fmt.Fprintf(s.env.Stdout, "programs can attach at %s\n", socket) },
	})
}
