// Package opensm is the tool of that name: a subnet manager with subnet administration, with the options of OpenSM
// (WinOF 5.50, "OpenSM - Subnet Manager"; opensm(8)). What it does is in internal/subnet.
package opensm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
)

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
	if err := o.load(); err != nil {
		return env.End(ctx, err)
	}
	if o.daemon {
		return env.End(ctx, detach(env.Args))
	}
	return env.End(ctx, serve(ctx, env, &o))
}

// load reads the files that the options name.
func (o *options) load() (err error) {
	if o.cfg.Partitions, err = loadPartitions(o.partitions); err != nil {
		return tool.Usagef("partition configuration (-P): %v", err)
	}
	if o.cfg.Roots, err = loadRoots(o.roots); err != nil {
		return tool.Usagef("root GUIDs (-a): %v", err)
	}
	return nil
}

// serve manages a subnet until the context ends, or with -o until it is up.
func serve(ctx context.Context, env tool.Env, o *options) error {
	where, err := umad.FromEnvironment()
	if err != nil {
		return err
	}
	where.IsSM = true
	t, device, err := umad.OpenTransport(where)
	if err != nil {
		return err
	}
	defer t.Close()
	if o.askGUID {
		fmt.Fprintf(env.Stdout, "port GUIDs:\n  %#016x  %s port %d, state %v\n", device.Node.PortGUID, device.Name, device.PortNum, device.Port.PortState)
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
			return fmt.Errorf("file of the process number (-J): %w", err)
		}
		defer os.Remove(o.pidFile)
	}
	return manage(ctx, env, o, t, j)
}

// manage runs the manager and writes down what it tells.
func manage(ctx context.Context, env tool.Env, o *options, t umad.Transport, j *journal) error {
	cache := cacheFile()
	lids, err := loadLIDs(cache)
	if err != nil {
		j.write(logError, fmt.Sprintf("%v: the LIDs of the past are not known", err))
	}
	o.cfg.LIDs = lids
	sm, err := subnet.New(o.cfg)
	if err != nil {
		return tool.Usagef("%v", err)
	}
	l := newLoop(sm, t)
	n := &notes{env: env, o: o, j: j, sm: sm, cache: cache}
	rescan, stop := signals(j)
	defer stop()
	sm.Start(l.now())
	err = l.run(ctx, rescan, n.each)
	if errors.Is(err, context.Canceled) {
		j.write(logInfo, "Exiting SM")
		return nil
	}
	return err
}

// notes writes down events.
type notes struct {
	env    tool.Env
	o      *options
	j      *journal
	sm     *subnet.SM
	cache  string
	unable bool
	// refused is why the subnet could not be brought up the last time.
	refused string
}

var errNotUp = errors.New("the subnet could not be brought up; the log says why")

// each looks at what has happened; done: with -o that is all.
func (n *notes) each() (done bool, err error) {
	for _, e := range n.sm.Events() {
		n.j.write(bits(e.Kind), e.Text)
		switch e.Kind {
		case subnet.EventState:
			fmt.Fprintln(n.env.Stdout, e.Text)
		case subnet.EventUp:
			fmt.Fprintln(n.env.Stdout, e.Text)
			done = done || n.o.once
		case subnet.EventLIDs:
			n.save()
		case subnet.EventRefused:
			if e.Text != n.refused { // the same again and again is for the log
				n.env.Errorf("%s", e.Text)
			}
			n.refused = e.Text
			if n.o.once {
				return true, errNotUp
			}
		case subnet.EventNotice:
			if n.o.once {
				done, err = true, errNotUp
			}
		}
	}
	return done, err
}

// save keeps the LIDs for the next start. Where that cannot be, the log says so once.
func (n *notes) save() {
	err := saveLIDs(n.cache, n.sm.LIDs())
	if err != nil && !n.unable {
		n.unable = true
		n.j.write(logError, fmt.Sprintf("the LIDs are not kept for the next start: %v", err))
	}
}
