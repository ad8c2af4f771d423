// Command softvpi-device-plugin offers the driver of a node to the pods of Kubernetes by kubelet's device plugin API
// (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1): as softvpi.io/rdma as many devices as the driver has sockets for containers, as
// softvpi.io/vf its virtual functions. It is a program of its own since it needs gRPC and Kubernetes' API, which nothing else here does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/cdi"
	"github.com/softvpi/softvpi/internal/os/paths"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, programName+":", err)
		os.Exit(2)
	}
	work := run
	if o.manual {
		work = func(context.Context, options) error { return writeManual(os.Stdout, version) }
	}
	if err := work(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, programName+":", err)
		os.Exit(1)
	}
}

const programName = "softvpi-device-plugin"

// version is that of the package, set by the linker.
var version = "development"

// options are those of the program.
type options struct {
	socket, kubelet, cdi, libraries string
	mounts, manual                  bool
	interval                        time.Duration
	log                             *slog.Logger
}

// flags returns the table by which the command line is parsed.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet(programName, flag.ContinueOnError)
	f.StringVar(&o.socket, "socket", paths.Socket(), "`path` of the driver's socket, which is the same outside of this container")
	f.StringVar(&o.kubelet, "kubelet", plugin.DevicePluginPath, "`directory` of kubelet's device plugins")
	f.StringVar(&o.cdi, "cdi", "/var/run/cdi", "`directory` for the CDI specification")
	f.StringVar(&o.libraries, "libraries", "/usr/lib/softvpi", "`directory` of the C libraries on the node")
	f.BoolVar(&o.mounts, "mounts", false, "answer with mounts and variables instead of CDI devices, for kubelets before 1.28 and runtimes without CDI")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "`time` between two looks at the driver")
	f.BoolVar(&o.manual, "man", false, "print the manual page, for man -l -, and do nothing else")
	return f
}

func parse(args []string) (o options, err error) {
	f := o.flags()
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.interval < 10*time.Millisecond || o.interval > time.Hour:
		return o, fmt.Errorf("-interval is %v; allowed: 10ms to 1h", o.interval)
	}
	for name, p := range map[string]string{"socket": o.socket, "kubelet": o.kubelet, "cdi": o.cdi, "libraries": o.libraries} {
		if !filepath.IsAbs(p) {
			return o, fmt.Errorf("-%s is %q; allowed: an absolute path", name, p)
		}
	}
	return o, nil
}

// run offers the driver until ctx ends. Without kubelet or a driver it waits.
func run(ctx context.Context, o options) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add(o.kubelet); err != nil {
		return fmt.Errorf("-kubelet: %w", err)
	}
	var all []*server
	var gone []chan struct{}
	for i := range offerings {
		all = append(all, newServer(&offerings[i], o.mounts, state{source: cdi.Source{Socket: o.socket}, why: "not looked at yet"}))
		gone = append(gone, make(chan struct{}, 1))
	}
	o.look(ctx, all)
	go func() {
		t := time.NewTicker(o.interval)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				o.look(ctx, all)
			case <-ctx.Done():
				return
			}
		}
	}()
	go o.watch(ctx, w, gone)
	var serving sync.WaitGroup
	for i, s := range all {
		serving.Go(func() { o.offer(ctx, s, gone[i]) })
	}
	serving.Wait()
	return nil
}

// offer serves a resource to each kubelet until ctx ends.
func (o options) offer(ctx context.Context, s *server, gone <-chan struct{}) {
	for ctx.Err() == nil {
		if err := serve(ctx, o.kubelet, s, gone); err != nil && ctx.Err() == nil {
			o.log.Warn("not registered", "cause", err)
			select { // kubelet may not be up yet
			case <-gone:
			case <-time.After(o.interval):
			case <-ctx.Done():
			}
		}
	}
	_ = os.Remove(filepath.Join(o.kubelet, s.socket))
}

// watch tells of a kubelet that started anew: it removes the sockets of plugins, and creates its own.
func (o options) watch(ctx context.Context, w *fsnotify.Watcher, gone []chan struct{}) {
	for {
		select {
		case e := <-w.Events:
			if name := filepath.Base(e.Name); name == kubeletSocket && e.Has(fsnotify.Create) {
				o.log.Info("kubelet started")
				for _, g := range gone {
					select {
					case g <- struct{}{}:
					default:
					}
				}
			}
		case err := <-w.Errors:
			o.log.Warn("the directory of kubelet is not watched", "cause", err)
		case <-ctx.Done():
			return
		}
	}
}

// look asks the driver what it offers, and how it is.
func (o options) look(ctx context.Context, all []*server) {
	before, _ := all[0].get()
	now := before
	now.healthy, now.why = true, ""
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := api.NewClient(o.socket)
	st, err := c.Status(ctx)
	if err != nil {
		now.healthy, now.why = false, err.Error()
	} else {
		now.take(st, o)
		h, err := c.Health(ctx)
		switch {
		case err != nil:
			now.healthy, now.why = false, err.Error()
		case !h.Live || !h.Ready:
			now.healthy, now.why = false, h.Reasons[0].Text
		}
	}
	if before.equal(&now) {
		return
	}
	o.log.Info("offered", "devices", len(now.source.Containers), "functions", len(now.source.Functions), "healthy", now.healthy, "why", now.why)
	if !o.mounts && len(now.source.Containers)+len(now.source.Functions) > 0 {
		spec, err := now.source.Spec()
		if err == nil {
			_, err = cdi.Write(o.cdi, spec)
		}
		if err != nil {
			o.log.Error("no CDI specification", "cause", err)
			now.healthy = false
		}
	}
	for _, s := range all {
		s.set(now)
	}
}

// take notes what a driver of that status has for pods.
func (s *state) take(st *api.Status, o options) {
	s.source, s.down = cdi.Source{Socket: o.socket, Libraries: o.libraries, Preload: true}, nil
	if st.Held != nil {
		for _, x := range st.Held.Containers {
			s.source.Containers = append(s.source.Containers, x.Number)
		}
	}
	for i := range st.Adapters {
		for _, f := range st.Adapters[i].Functions {
			if f.ContainerSocket == "" || f.NoRDMA {
				continue
			}
			if s.source.Functions = append(s.source.Functions, f.Name); !f.Up {
				s.down = append(s.down, cdi.Function(f.Name))
			}
		}
	}
}
