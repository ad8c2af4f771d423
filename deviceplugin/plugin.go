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

// Resource is what pods ask for.
const Resource = cdi.Kind

const (
	kubeletSocket = "kubelet.sock"
	ownSocket     = "softvpi-rdma.sock"
)

// state is what the driver offers at a time.
type state struct {
	source  cdi.Source
	healthy bool
	why     string // not healthy
}

func (s *state) equal(t *state) bool {
	return s.healthy == t.healthy && s.source.Socket == t.source.Socket && slices.Equal(s.source.Containers, t.source.Containers)
}

// devices returns what is offered: one device for each container of the driver.
func (s *state) devices() (list []*plugin.Device) {
	health := plugin.Unhealthy
	if s.healthy {
		health = plugin.Healthy
	}
	for _, n := range s.source.Containers {
		list = append(list, &plugin.Device{ID: strconv.Itoa(n), Health: health})
	}
	return list
}

// server answers kubelet. Its state changes while it does.
type server struct {
	plugin.UnimplementedDevicePluginServer
	mounts bool // answer with mounts and variables, for kubelets and runtimes without CDI

	mu      sync.Mutex
	state   state
	changed chan struct{} // closed by the next change
}

func newServer(mounts bool, s state) *server {
	return &server{mounts: mounts, state: s, changed: make(chan struct{})}
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
		if err := to.Send(&plugin.ListAndWatchResponse{Devices: now.devices()}); err != nil {
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
			return nil, status.Errorf(codes.InvalidArgument, "a container asks for %d %s; allowed: 1", len(c.DevicesIds), Resource)
		}
		r, err := now.allocate(c.DevicesIds[0], s.mounts)
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
	path := filepath.Join(dir, ownSocket)
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
	if err := register(ctx, dir); err != nil {
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
func register(ctx context.Context, dir string) error {
	c, err := grpc.NewClient("unix://"+filepath.Join(dir, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = plugin.NewRegistrationClient(c).Register(ctx, &plugin.RegisterRequest{Version: plugin.Version, Endpoint: ownSocket,
		ResourceName: Resource, Options: &plugin.DevicePluginOptions{}})
	if err != nil {
		return fmt.Errorf("kubelet does not take the plugin: %w", err)
	}
	return nil
}
