// Command softvpi-device-plugin offers the driver of a node to the pods of Kubernetes by kubelet's device plugin API
// (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1): as softvpi.io/rdma as many devices as the driver has sockets for containers, as
// softvpi.io/vf its virtual functions. It is a program of its own since it needs gRPC and Kubernetes' API, which nothing else here does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/softvpi/softvpi/deviceplugin/program"
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/cdi"
)

func main() {
	os.Exit(program.Main(programName, func(args []string) (func(context.Context) error, error) {
		o, err := parse(args)
		if o.Manual {
			return func(context.Context) error { return writeManual(os.Stdout, version) }, err
		}
		return func(ctx context.Context) error { return run(ctx, o) }, err
	}))
}

const programName = "softvpi-device-plugin"

// version is that of the package, set by the linker.
var version = "development"

// options are those of the program.
type options struct {
	program.Options
	kubelet string
	mounts  bool
}

// flags returns the table by which the command line is parsed.
func (o *options) flags() *flag.FlagSet {
	f := o.Flags(programName)
	f.StringVar(&o.kubelet, "kubelet", plugin.DevicePluginPath, "`directory` of kubelet's device plugins")
	f.BoolVar(&o.mounts, "mounts", false, "answer with mounts and variables instead of CDI devices, for kubelets before 1.28 and runtimes without CDI")
	return f
}

func parse(args []string) (o options, err error) {
	err = o.Parse(o.flags(), args)
	return o, err
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
		all = append(all, newServer(&offerings[i], o.mounts, state{source: cdi.Source{Socket: o.Socket}, why: "not looked at yet"}))
		gone = append(gone, make(chan struct{}, 1))
	}
	o.look(ctx, all)
	go func() {
		t := time.NewTicker(o.Interval)
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
			o.Log.Warn("not registered", "cause", err)
			select { // kubelet may not be up yet
			case <-gone:
			case <-time.After(o.Interval):
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
				o.Log.Info("kubelet started")
				for _, g := range gone {
					select {
					case g <- struct{}{}:
					default:
					}
				}
			}
		case err := <-w.Errors:
			o.Log.Warn("the directory of kubelet is not watched", "cause", err)
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
	c := api.NewClient(o.Socket)
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
	o.Log.Info("offered", "devices", len(now.source.Containers), "functions", len(now.source.Functions), "healthy", now.healthy, "why", now.why)
	if !o.mounts && len(now.source.Containers)+len(now.source.Functions) > 0 {
		spec, err := now.source.Spec()
		if err == nil {
			_, err = cdi.Write(o.CDI, spec)
		}
		if err != nil {
			o.Log.Error("no CDI specification", "cause", err)
			now.healthy = false
		}
	}
	for _, s := range all {
		s.set(now)
	}
}

// take notes what a driver of that status has for pods.
func (s *state) take(st *api.Status, o options) {
	s.source, s.down = cdi.Source{Socket: o.Socket, Libraries: o.Libraries, Preload: true}, nil
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
