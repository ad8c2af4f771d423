package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/softvpi/softvpi/internal/cdi"
)

const kubeletSocket = "kubelet.sock"

const (
	// Shared is what pods ask for that share the driver's adapters, each with its quota.
	Shared = cdi.Kind
	// Exclusive is what pods ask for that are to have a virtual function for themselves.
	Exclusive = "softvpi.io/vf"
)

// offering is a resource that pods may ask for, which kubelet knows as a plugin of its own.
type offering struct {
	name   string
	socket string // in kubelet's directory
	// ids are its devices, as package cdi names them.
	ids func(*cdi.Source) []string
}

var offerings = []offering{
	{Shared, "softvpi-rdma.sock", func(s *cdi.Source) (ids []string) {
		for _, n := range s.Containers {
			ids = append(ids, strconv.Itoa(n))
		}
		return ids
	}},
	{Exclusive, "softvpi-vf.sock", func(s *cdi.Source) (ids []string) {
		for _, n := range s.Functions {
			ids = append(ids, cdi.Function(n))
		}
		return ids
	}},
}

// state is what the driver offers at a time.
type state struct {
	source  cdi.Source
	down    []string // ids of virtual functions without a link
	healthy bool
	why     string // not healthy
}

func (s *state) equal(t *state) bool {
	return s.healthy == t.healthy && s.source.Socket == t.source.Socket && slices.Equal(s.source.Containers, t.source.Containers) &&
		slices.Equal(s.source.Functions, t.source.Functions) && slices.Equal(s.down, t.down)
}

// devices returns what is offered of a resource.
func (s *state) devices(of *offering) (list []*plugin.Device) {
	for _, id := range of.ids(&s.source) {
		health := plugin.Healthy
		if !s.healthy || slices.Contains(s.down, id) {
			health = plugin.Unhealthy
		}
		list = append(list, &plugin.Device{ID: id, Health: health})
	}
	return list
}

// server answers kubelet about a resource. Its state changes while it does.
type server struct {
	plugin.UnimplementedDevicePluginServer
	*offering
	mounts bool // answer with mounts and variables, for kubelets and runtimes without CDI

	mu      sync.Mutex
	state   state
	changed chan struct{} // closed by the next change
}

func newServer(of *offering, mounts bool, s state) *server {
	return &server{offering: of, mounts: mounts, state: s, changed: make(chan struct{})}
}

// set changes the state, and tells those who watch.
func (s *server) set(now state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.equal(&now) {
		return
	}
	s.state = now
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) get() (state, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

// GetDevicePluginOptions implements plugin.DevicePluginServer: kubelet need not ask which devices are preferred, nor before a start.
func (s *server) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

// ListAndWatch implements plugin.DevicePluginServer.
func (s *server) ListAndWatch(_ *plugin.Empty, to grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	for {
		now, changed := s.get()
		if err := to.Send(&plugin.ListAndWatchResponse{Devices: now.devices(s.offering)}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-to.Context().Done():
			return nil
		}
	}
}

// Allocate implements plugin.DevicePluginServer. A container takes one device: a second socket would be at the same place.
func (s *server) Allocate(_ context.Context, q *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	now, _ := s.get()
	var out plugin.AllocateResponse
	for _, c := range q.ContainerRequests {
		if len(c.DevicesIds) != 1 {
			return nil, status.Errorf(codes.InvalidArgument, "a container asks for %d %s; allowed: 1", len(c.DevicesIds), s.name)
		}
		id := c.DevicesIds[0]
		if !slices.Contains(s.ids(&now.source), id) {
			return nil, status.Errorf(codes.NotFound, "%s has no device %q", s.name, id)
		}
		r, err := now.allocate(id, s.mounts)
		if err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		out.ContainerResponses = append(out.ContainerResponses, r)
	}
	return &out, nil
}

func (s *state) allocate(id string, mounts bool) (*plugin.ContainerAllocateResponse, error) {
	own, err := s.source.Edits(id)
	if err != nil {
		return nil, err
	}
	if !mounts {
		return &plugin.ContainerAllocateResponse{CdiDevices: []*plugin.CDIDevice{{Name: cdi.Name(id)}}}, nil
	}
	r := &plugin.ContainerAllocateResponse{Envs: map[string]string{}}
	common := s.source.Common()
	for _, m := range append(common.Mounts, own.Mounts...) {
		r.Mounts = append(r.Mounts, &plugin.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath, ReadOnly: true})
	}
	for _, e := range append(common.Env, own.Env...) {
		name, value, _ := strings.Cut(e, "=")
		r.Envs[name] = value
	}
	return r, nil
}

// serve serves a plugin at its socket in kubelet's directory, and registers it, until ctx ends or gone tells of a kubelet that has
// started anew, which removes the socket.
func serve(ctx context.Context, dir string, s *server, gone <-chan struct{}) error {
	path := filepath.Join(dir, s.socket)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	plugin.RegisterDevicePluginServer(g, s)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	defer g.Stop()
	if err := s.register(ctx, dir); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-gone:
		return nil
	case <-ctx.Done():
		return nil
	}
}

// register tells kubelet of the plugin.
func (r *offering) register(ctx context.Context, dir string) error {
	c, err := grpc.NewClient("unix://"+filepath.Join(dir, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = plugin.NewRegistrationClient(c).Register(ctx, &plugin.RegisterRequest{Version: plugin.Version, Endpoint: r.socket,
		ResourceName: r.name, Options: &plugin.DevicePluginOptions{}})
	if err != nil {
		return fmt.Errorf("kubelet does not take the plugin of %s: %w", r.name, err)
	}
	return nil
}
