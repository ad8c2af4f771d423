// Command softvpi-dra-driver offers the driver of a node to the pods of Kubernetes by Dynamic Resource Allocation (resource.k8s.io/v1,
// k8s.io/kubelet/pkg/apis/dra/v1): each socket for containers and each virtual function is a device of its own in the node's
// ResourceSlices, with what claims select by. It is a program apart from the device plugin, since it needs a client of the API server.
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
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/softvpi/softvpi/internal/os/paths"
)

const (
	programName = "softvpi-dra-driver"
	// DriverName is that of the driver in resource slices, claims and classes.
	DriverName = "rdma.softvpi.io"
)

// version is that of the package, set by the linker.
var version = "development"

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
	case o.manual:
		err = writeManual(os.Stdout, version)
	default:
		var c kubernetes.Interface
		if c, err = o.client(); err == nil {
			err = run(ctx, o, c)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, programName+":", err)
		os.Exit(1)
	}
}

// options are those of the program.
type options struct {
	node, kubeconfig                       string
	socket, registry, data, cdi, libraries string
	manual                                 bool
	interval                               time.Duration
	log                                    *slog.Logger
}

// flags returns the table by which the command line is parsed.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet(programName, flag.ContinueOnError)
	f.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "`name` of this node, as the API server has it; in the environment: NODE_NAME")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says where the API server is; without it that of the cluster of this pod")
	f.StringVar(&o.socket, "socket", paths.Socket(), "`path` of the driver's socket, which is the same outside of this container")
	f.StringVar(&o.registry, "registry", kubeletplugin.KubeletRegistryDir, "`directory` in which kubelet finds plugins")
	f.StringVar(&o.data, "data", filepath.Join(kubeletplugin.KubeletPluginsDir, DriverName),
		"`directory` of this plugin's socket, and of the claims that are prepared; kubelet has it at the same path")
	f.StringVar(&o.cdi, "cdi", "/var/run/cdi", "`directory` for the CDI specifications of claims")
	f.StringVar(&o.libraries, "libraries", "/usr/lib/softvpi", "`directory` of the C libraries on the node")
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
	case o.manual:
		return o, nil
	case o.node == "":
		return o, fmt.Errorf("-node is %q; allowed: the name of this node", o.node)
	case o.interval < 10*time.Millisecond || o.interval > time.Hour:
		return o, fmt.Errorf("-interval is %v; allowed: 10ms to 1h", o.interval)
	}
	for _, p := range []struct{ name, path string }{{"socket", o.socket}, {"registry", o.registry}, {"data", o.data}, {"cdi", o.cdi},
		{"libraries", o.libraries}} {
		if !filepath.IsAbs(p.path) {
			return o, fmt.Errorf("-%s is %q; allowed: an absolute path", p.name, p.path)
		}
	}
	return o, nil
}

// client returns one of the API server.
func (o *options) client() (kubernetes.Interface, error) {
	var c *rest.Config
	var err error
	if o.kubeconfig == "" {
		c, err = rest.InClusterConfig()
	} else {
		c, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("no API server (-kubeconfig): %w", err)
	}
	c.UserAgent = programName + "/" + version
	return kubernetes.NewForConfig(c)
}

// run offers the driver until ctx ends, or something fails that trying again does not mend. Without a driver it waits.
func run(ctx context.Context, o options, c kubernetes.Interface) error {
	if err := os.MkdirAll(o.data, 0o750); err != nil {
		return fmt.Errorf("-data: %w", err)
	}
	p, err := newPlugin(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.fatal = cancel
	p.look(ctx)
	h, err := kubeletplugin.Start(ctx, p, kubeletplugin.KubeClient(c), kubeletplugin.DriverName(DriverName), kubeletplugin.NodeName(o.node),
		kubeletplugin.RegistrarDirectoryPath(o.registry), kubeletplugin.PluginDataDirectoryPath(o.data))
	if err != nil {
		return err
	}
	defer h.Stop()
	t := time.NewTicker(o.interval)
	defer t.Stop()
	for {
		if r, news := p.resources(); news {
			if err := h.PublishResources(ctx, r); err != nil {
				return err
			}
		}
		select {
		case <-t.C:
			p.look(ctx)
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}
