// Command softvpi-dra-driver offers the driver of a node to the pods of Kubernetes by Dynamic Resource Allocation (resource.k8s.io/v1,
// k8s.io/kubelet/pkg/apis/dra/v1): each socket for containers and each virtual function is a device of its own in the node's
// ResourceSlices, with what claims select by. It is a program apart from the device plugin, since it needs a client of the API server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/softvpi/softvpi/deviceplugin/program"
)

const (
	programName = "softvpi-dra-driver"
	// DriverName is that of the driver in resource slices, claims and classes.
	DriverName = "rdma.softvpi.io"
)

// version is that of the package, set by the linker.
var version = "development"

func main() {
	os.Exit(program.Main(programName, func(args []string) (func(context.Context) error, error) {
		o, err := parse(args)
		if o.Manual {
			return func(context.Context) error { return writeManual(os.Stdout, version) }, err
		}
		return func(ctx context.Context) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			return run(ctx, o, c)
		}, err
	}))
}

// options are those of the program.
type options struct {
	program.Options
	node, kubeconfig string
	registry, data   string
}

// flags returns the table by which the command line is parsed.
func (o *options) flags() *flag.FlagSet {
	f := o.Flags(programName)
	f.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "`name` of this node, as the API server has it; in the environment: NODE_NAME")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says where the API server is; without it that of the cluster of this pod")
	f.StringVar(&o.registry, "registry", kubeletplugin.KubeletRegistryDir, "`directory` in which kubelet finds plugins")
	f.StringVar(&o.data, "data", filepath.Join(kubeletplugin.KubeletPluginsDir, DriverName),
		"`directory` of this plugin's socket, and of the claims that are prepared; kubelet has it at the same path")
	return f
}

func parse(args []string) (o options, err error) {
	if err := o.Parse(o.flags(), args); err != nil {
		return o, err
	}
	if o.node == "" && !o.Manual {
		return o, fmt.Errorf("-node is %q; allowed: the name of this node", o.node)
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
	p, err := newPlugin(o, c)
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
	t := time.NewTicker(o.Interval)
	defer t.Stop()
	for {
		if r, news := p.resources(); news {
			if err := h.PublishResources(ctx, r); err != nil && ctx.Err() == nil { // its end is no failure
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
