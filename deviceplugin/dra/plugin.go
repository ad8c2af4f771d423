package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	engine "tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/cdi"
)

// claimKind is the kind of the CDI devices of claims.
const claimKind = "softvpi.io/claim"

// plugin is the driver's side of kubelet's calls.
type plugin struct {
	health.UnimplementedDRAResourceHealthServer
	o     options
	api   driverAPI
	kube  kubernetes.Interface
	fatal context.CancelCauseFunc // ends the program

	mu      sync.Mutex
	devices []device
	claims  map[types.UID]claim // that are prepared, as the checkpoint has them
	changed chan struct{}       // closed when devices change
	news    bool                // what is published is not what there is
}

var _ kubeletplugin.DRAPlugin = (*plugin)(nil)

func newPlugin(o options, kube kubernetes.Interface) (*plugin, error) {
	claims, err := readCheckpoint(filepath.Join(o.data, checkpointFile))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.CDI, 0o755); err != nil {
		return nil, err
	}
	return &plugin{o: o, api: driverAPI{api.NewClient(o.Socket)}, kube: kube, fatal: func(error) {}, claims: claims,
		changed: make(chan struct{}), news: true}, nil
}

// HandleError implements kubeletplugin.DRAPlugin.
func (p *plugin) HandleError(_ context.Context, err error, msg string) {
	p.o.Log.Error(msg, "cause", err)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		p.fatal(err)
	}
}

// look asks the driver what it offers and how it is, and has it keep what prepared claims were given. A driver that does not answer
// offers what it did, but nothing of it is healthy.
func (p *plugin) look(ctx context.Context) {
	list, err := p.api.devices(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		list = append(list, p.devices...)
		for i := range list {
			list[i].why = err.Error()
		}
	}
	for _, c := range p.claims {
		for _, h := range c.Devices { // what it is without its claim
			for i := range list {
				if d := &list[i]; d.name == h.Device && d.function == "" {
					d.memory, d.descriptors = h.BaseMemory, h.BaseDescriptors
				}
			}
		}
	}
	same := equal(p.devices, list)
	p.devices = list
	if err == nil {
		for uid, c := range p.claims { // a driver that has started anew knows nothing of them
			if err := p.apply(ctx, &c); err != nil {
				p.o.Log.Warn("a prepared claim is not as it was", "claim", uid, "cause", err)
			}
		}
	}
	if same {
		return
	}
	healthy := 0
	for i := range list {
		if list[i].why == "" {
			healthy++
		}
	}
	p.o.Log.Info("offered", "devices", len(list), "healthy", healthy)
	close(p.changed)
	p.changed = make(chan struct{})
	p.news = true
}

// resources returns what is to be published, if anything is anew since it was asked for.
func (p *plugin) resources() (r resourceslice.DriverResources, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news, p.news = p.news, false
	return slicesOf(p.o.node, p.devices), news
}

// find returns a device by its name; nil: there is none.
func (p *plugin) find(name string) *device {
	for i := range p.devices {
		if p.devices[i].name == name {
			return &p.devices[i]
		}
	}
	return nil
}

// holder returns the claim that has a device; empty: none.
func (p *plugin) holder(name string) (types.UID, claim) {
	for uid, c := range p.claims {
		for i := range c.Devices {
			if c.Devices[i].Device == name {
				return uid, c
			}
		}
	}
	return "", claim{}
}

func specName(uid types.UID) string { return "softvpi.io-claim-" + string(uid) + ".json" }

// writeSpec writes the CDI specification of a claim.
func (p *plugin) writeSpec(uid types.UID, c *claim) error {
	if len(c.Devices) == 0 {
		return nil
	}
	spec := &specs.Spec{Kind: claimKind}
	for i := range c.Devices {
		h := &c.Devices[i]
		source := cdi.Source{Socket: p.o.Socket, Libraries: p.o.Libraries, Preload: h.Preload}
		if h.Function != "" {
			source.Functions = []string{h.Function}
		} else {
			source.Containers = []int{h.Number}
		}
		e, err := source.Edits(h.Name)
		if err != nil {
			return err
		}
		common := source.Common()
		e.Mounts, e.Env = append(e.Mounts, common.Mounts...), append(e.Env, common.Env...)
		spec.Devices = append(spec.Devices, specs.Device{Name: string(uid) + "-" + h.Device, ContainerEdits: e})
	}
	var err error
	if spec.Version, err = specs.MinimumRequiredVersion(spec); err != nil {
		return err
	}
	cache, err := engine.NewCache(engine.WithSpecDirs(p.o.CDI), engine.WithAutoRefresh(false))
	if err != nil {
		return err
	}
	if err := cache.WriteSpec(spec, specName(uid)); err != nil {
		return err
	}
	return os.Chmod(filepath.Join(p.o.CDI, specName(uid)), 0o644) // engines of all users read it
}

func (p *plugin) removeSpec(uid types.UID) error {
	err := os.Remove(filepath.Join(p.o.CDI, specName(uid)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// driverAPI is the management of the driver.
type driverAPI struct{ *api.Client }

const patience = 10 * time.Second

// devices returns what the driver offers.
func (a driverAPI) devices(ctx context.Context) ([]device, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	st, err := a.Status(ctx)
	if err != nil {
		return nil, err
	}
	h, err := a.Health(ctx)
	if err != nil {
		return nil, err
	}
	unready := ""
	if !h.Live || !h.Ready {
		unready = h.Reasons[0].Text
	}
	return devicesOf(st, unready), nil
}

// change is what is to be changed of a device: the limits of a container, or the settings of a function.
type change struct {
	container   int
	memory      *uint64
	descriptors *uint32
	function    string
	settings    []string
}

func (a driverAPI) change(ctx context.Context, c change) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case c.function != "" && len(c.settings) > 0:
		return a.SetFunction(ctx, api.FunctionRequest{Name: c.function, Settings: c.settings})
	case c.memory != nil || c.descriptors != nil:
		return a.SetContainer(ctx, api.ContainerRequest{Number: c.container, Memory: c.memory, Descriptors: c.descriptors})
	}
	return nil
}
