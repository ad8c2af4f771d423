// Package opensm is a subnet manager with subnet administration, with the options of OpenSM (WinOF 5.50,
// "OpenSM - Subnet Manager"; opensm(8)). internal/subnet implements it.
package opensm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
)

// detached is a variable that marks the program in the background.
const detached = "SOFTVPI_OPENSM_DETACHED"

// Main runs opensm.
func Main(ctx context.Context, env tool.Env) int {
	o, err := parse(env.Args)
	if err != nil {
		return env.End(ctx, err)
	}
	switch {
	case o.help:
		fmt.Fprint(env.Stdout, usage())
		return tool.Success
	case o.version:
		fmt.Fprintln(env.Stdout, "OpenSM of SoftVPI")
		return tool.Success
	}
	if o.create != "" {
		return env.End(ctx, o.createConfig())
	}
	if err := o.load(); err != nil {
		return env.End(ctx, err)
	}
	if o.daemon && os.Getenv(detached) == "" {
		return env.End(ctx, detach(env.Args))
	}
	return env.End(ctx, serve(ctx, env, &o))
}

// load reads the files named by the options.
func (o *options) load() (err error) {
	if o.cfg.Partitions, err = loadPartitions(o.partitions); err != nil {
		return tool.Usagef("partition configuration (-P): %v", err)
	}
	if o.cfg.Roots, err = loadRoots(o.roots); err != nil {
		return tool.Usagef("root GUIDs (-a): %v", err)
	}
	if o.cfg.PrefixRoutes, err = loadPrefixRoutes(o.routes); err != nil {
		return tool.Usagef("prefix routes (--prefix_routes_file): %v", err)
	}
	if o.cfg.Limits = &o.limits; o.qos {
		o.cfg.QoS = o.qosOf()
		if o.cfg.Policy, err = loadPolicy(o.policy); err != nil {
			return tool.Usagef("QoS policy (-Y): %v", err)
		}
	}
	return nil
}

// serve manages a subnet until the context ends or, with -o, until it is up.
func serve(ctx context.Context, env tool.Env, o *options) error {
	where, err := umad.FromEnvironment()
	if err != nil {
		return err
	}
	where.Manager = true
	t, device, err := where.Transport()
	if err != nil {
		return err
	}
	defer t.Close()
	if o.askGUID {
		fmt.Fprintf(env.Stdout, "port GUIDs:\n  %#016x  %s port %d, state %v\n", device.Node.PortGUID, device.Name, device.PortNum,
			device.Port.PortState)
		return tool.Usagef("option -g 0: allowed: one of the port GUIDs above")
	}
	if o.guid != 0 && o.guid != device.Node.PortGUID {
		return tool.Usagef("option -g %#016x: there is no such port; allowed: %#016x", o.guid, device.Node.PortGUID)
	}
	j, err := openJournal(o, env.Stdout)
	if err != nil {
		return err
	}
	defer j.close()
	if o.pidFile != "" {
		if err := os.WriteFile(o.pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
			return fmt.Errorf("process ID file (-J): %w", err)
		}
		defer os.Remove(o.pidFile)
	}
	return manage(ctx, env, o, &port{t: t, start: time.Now(), brief: where.Service.Socket != ""}, j)
}

// manage runs the manager and logs its events.
func manage(ctx context.Context, env tool.Env, o *options, p *port, j *journal) error {
	n := &notes{env: env, o: o, j: j}
	s, err := service.New(p, service.Config{Subnet: o.cfg, Files: o.files(), Tell: n.tell})
	if err != nil {
		return tool.Usagef("%v", err)
	}
	go p.read(s)
	defer signals(j, s.Rescan)()
	err = s.Run(ctx)
	switch {
	case errors.Is(err, errEnough):
		return nil
	case errors.Is(err, context.Canceled):
		j.write(logInfo, "Exiting SM")
		return nil
	}
	return err
}

// notes logs events.
type notes struct {
	env tool.Env
	o   *options
	j   *journal
	// refused is why the subnet last could not be brought up.
	refused string
}

var (
	errNotUp  = errors.New("the subnet could not be brought up; the log says why")
	errEnough = errors.New("the subnet is up")
)

// tell logs an event. With -o the first sweep must bring the subnet up, and the tool then ends.
func (n *notes) tell(e subnet.Event) error {
	n.j.write(bits(e.Kind), e.Text)
	switch e.Kind {
	case subnet.EventState:
		fmt.Fprintln(n.env.Stdout, e.Text)
	case subnet.EventUp:
		fmt.Fprintln(n.env.Stdout, e.Text)
		if n.o.once {
			return errEnough
		}
	case subnet.EventRefused:
		if e.Text != n.refused { // repetitions go only to the log
			n.env.Errorf("%s", e.Text)
		}
		n.refused = e.Text
		if n.o.once {
			return errNotUp
		}
	case subnet.EventNotice:
		if n.o.once {
			return errNotUp
		}
	}
	return nil
}
