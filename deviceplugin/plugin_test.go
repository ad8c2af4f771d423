package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	engine "tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/softvpi/softvpi/deviceplugin/program"
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// kubelet is the side of kubelet: its registration socket in a directory, and what plugins have registered there.
type kubelet struct {
	plugin.UnimplementedRegistrationServer
	t          *testing.T
	dir        string
	grpc       *grpc.Server
	registered chan *plugin.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, q *plugin.RegisterRequest) (*plugin.Empty, error) {
	k.registered <- q
	return &plugin.Empty{}, nil
}

// start starts kubelet as it starts: it removes the sockets of plugins.
func (k *kubelet) start() {
	k.t.Helper()
	old, _ := filepath.Glob(filepath.Join(k.dir, "*.sock"))
	for _, f := range old {
		_ = os.Remove(f)
	}
	l, err := net.Listen("unix", filepath.Join(k.dir, kubeletSocket))
	if err != nil {
		k.t.Fatal(err)
	}
	k.grpc = grpc.NewServer()
	plugin.RegisterRegistrationServer(k.grpc, k)
	go func() { _ = k.grpc.Serve(l) }()
}

// plugin waits until that of a resource registers, and connects to it.
func (k *kubelet) plugin(resource string) plugin.DevicePluginClient {
	k.t.Helper()
	select {
	case q := <-k.registered:
		if q.Version != "v1beta1" || strings.Contains(q.Endpoint, "/") {
			k.t.Errorf("registered: %v", q)
		}
		if q.ResourceName != resource {
			return k.plugin(resource)
		}
		c, err := grpc.NewClient("unix://"+filepath.Join(k.dir, q.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			k.t.Fatal(err)
		}
		k.t.Cleanup(func() { c.Close() })
		return plugin.NewDevicePluginClient(c)
	case <-time.After(await.Limit):
		k.t.Fatal("no plugin registers")
		return nil
	}
}

// bed is a node: kubelet, a driver with an adapter and two sockets for containers, and the plugin.
func bed(t *testing.T, mounts bool, a config.Adapter) (*kubelet, *driver.Driver, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	k := &kubelet{t: t, dir: dir, registered: make(chan *plugin.RegisterRequest, 8)}
	k.start()
	t.Cleanup(func() { k.grpc.Stop() })
	cfg := driverbed.Config(t, a)
	cfg.Containers = &config.Containers{Count: 2}
	specs := t.TempDir()
	d := driverbed.Start(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- run(ctx, options{kubelet: dir, mounts: mounts, Options: program.Options{Socket: cfg.Socket, CDI: specs,
			Libraries: "/usr/lib/softvpi", Interval: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for i := range offerings {
			if _, err := os.Stat(filepath.Join(dir, offerings[i].socket)); err == nil {
				t.Errorf("the socket of %s is left", offerings[i].name)
			}
		}
	})
	return k, d, specs
}

func watch(t *testing.T, p plugin.DevicePluginClient) grpc.ServerStreamingClient[plugin.ListAndWatchResponse] {
	t.Helper()
	w, err := p.ListAndWatch(t.Context(), &plugin.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// listed waits for a list with both containers' devices of that health.
func listed(t *testing.T, w grpc.ServerStreamingClient[plugin.ListAndWatchResponse], health string) {
	t.Helper()
	listedAs(t, w, health, "0", "1")
}

// listedAs waits for a list whose devices of that health are these.
func listedAs(t *testing.T, w grpc.ServerStreamingClient[plugin.ListAndWatchResponse], health string, want ...string) {
	t.Helper()
	for {
		r, err := w.Recv()
		if err != nil {
			t.Fatalf("no list of %s devices: %v", health, err)
		}
		var ids []string
		for _, d := range r.Devices {
			if d.Health == health {
				ids = append(ids, d.ID)
			}
		}
		if slices.Equal(ids, want) {
			return
		}
	}
}

func allocate(p plugin.DevicePluginClient, ids ...string) (*plugin.ContainerAllocateResponse, error) {
	r, err := p.Allocate(context.Background(), &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{
		{DevicesIds: ids}}})
	if err != nil {
		return nil, err
	}
	return r.ContainerResponses[0], nil
}

// Kubelet gets a device for each container of the driver, as healthy as the driver is, and CDI devices that engines find; a
// kubelet that starts anew gets them again.
func TestKubelet(t *testing.T) {
	k, d, specs := bed(t, false, config.Adapter{Name: "a"})
	cfg := d.Config()
	p := k.plugin("softvpi.io/rdma")
	if o, err := p.GetDevicePluginOptions(t.Context(), &plugin.Empty{}); err != nil || o.PreStartRequired {
		t.Error(o, err)
	}
	w := watch(t, p)
	listed(t, w, plugin.Healthy)
	r, err := allocate(p, "1")
	if err != nil || len(r.CdiDevices) != 1 || r.CdiDevices[0].Name != "softvpi.io/rdma=1" || len(r.Mounts)+len(r.Envs) != 0 {
		t.Fatal(r, err)
	}
	cache, err := engine.NewCache(engine.WithSpecDirs(specs), engine.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if x := cache.GetDevice(r.CdiDevices[0].Name); x == nil ||
		x.ContainerEdits.Mounts[0].HostPath != filepath.Dir(paths.Container(cfg.Socket, 1)) {
		t.Errorf("the engine finds %+v", x)
	}
	if _, err := allocate(p, "0", "1"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("two devices for one container: %v", err)
	}
	if _, err := allocate(p, "7"); status.Code(err) != codes.NotFound {
		t.Errorf("a device that was not offered: %v", err)
	}

	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	listed(t, w, plugin.Unhealthy)
	driverbed.Start(t, cfg)
	listed(t, w, plugin.Healthy)

	k.grpc.Stop()
	k.start()
	listed(t, watch(t, k.plugin("softvpi.io/rdma")), plugin.Healthy)
	for { // lists of before may still wait in it
		if _, err := w.Recv(); err == io.EOF {
			t.Error("the stream of the kubelet before was ended in order, not cut off")
		} else if err == nil {
			continue
		}
		break
	}
}

// TestFunctions: virtual functions are a resource of their own, each for one container, as healthy as its link is; they come and go while
// kubelet watches.
func TestFunctions(t *testing.T) {
	k, d, specs := bed(t, false, config.Adapter{Name: "pf", Link: config.LinkSwitch, Wire: config.Wire{Switch: "wire", Prefix: 24}})
	p := k.plugin("softvpi.io/vf")
	w := watch(t, p)
	create := func(name string) {
		t.Helper()
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "pf", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	create("red")
	listedAs(t, w, plugin.Healthy, "vf-red")
	create("blue")
	listedAs(t, w, plugin.Healthy, "vf-red", "vf-blue")
	r, err := allocate(p, "vf-blue")
	if err != nil || len(r.CdiDevices) != 1 || r.CdiDevices[0].Name != "softvpi.io/rdma=vf-blue" {
		t.Fatal(r, err)
	}
	cache, err := engine.NewCache(engine.WithSpecDirs(specs), engine.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if x := cache.GetDevice(r.CdiDevices[0].Name); x == nil ||
		x.ContainerEdits.Mounts[0].HostPath != filepath.Dir(paths.FunctionContainer(d.Config().Socket, "blue")) {
		t.Errorf("the engine finds %+v", x)
	}
	for id, want := range map[string]codes.Code{"0": codes.NotFound, "vf-green": codes.NotFound} {
		if _, err := allocate(p, id); status.Code(err) != want {
			t.Errorf("device %s: %v, want %v", id, err, want)
		}
	}
	if _, err := allocate(p, "vf-red", "vf-blue"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("two functions for one container: %v", err)
	}
	if err := d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"link=down"}}); err != nil {
		t.Fatal(err)
	}
	listedAs(t, w, plugin.Unhealthy, "vf-red")
	if err := d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"rdma=off"}}); err != nil {
		t.Fatal(err)
	}
	listedAs(t, w, plugin.Healthy, "vf-blue")
	if err := d.RemoveFunction("blue"); err != nil {
		t.Fatal(err)
	}
	listedAs(t, w, plugin.Healthy)
}

// Kubelets and runtimes without CDI get the same as mounts and variables.
func TestMounts(t *testing.T) {
	k, d, specs := bed(t, true, config.Adapter{Name: "a"})
	p := k.plugin("softvpi.io/rdma")
	listed(t, watch(t, p), plugin.Healthy)
	r, err := allocate(p, "0")
	if err != nil || len(r.CdiDevices) != 0 {
		t.Fatal(r, err)
	}
	mounts := map[string]string{}
	for _, m := range r.Mounts {
		if mounts[m.ContainerPath] = m.HostPath; !m.ReadOnly {
			t.Errorf("%s can be written", m.ContainerPath)
		}
	}
	if len(mounts) != 2 || mounts["/run/softvpi"] != filepath.Dir(paths.Container(d.Config().Socket, 0)) ||
		mounts["/usr/lib/softvpi"] != "/usr/lib/softvpi" {
		t.Errorf("mounts are %v", mounts)
	}
	if r.Envs["SOFTVPI_SOCKET"] != "/run/softvpi/driver.sock" || r.Envs["LD_LIBRARY_PATH"] != "/usr/lib/softvpi" {
		t.Errorf("variables are %v", r.Envs)
	}
	if left, _ := os.ReadDir(specs); len(left) != 0 {
		t.Errorf("a specification was written: %v", left)
	}
}

// TestManual: the page explains every option of the program, and its own name.
func TestManual(t *testing.T) {
	var b strings.Builder
	if err := writeManual(&b, "1.2"); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(b.String(), `\-`, "-")
	for _, want := range []string{`.TH "SOFTVPI-DEVICE-PLUGIN" 1 "" "1.2"`, "softvpi-device-plugin - ", "-socket path", "-kubelet directory", "-mounts", "-interval time",
		"(default: 2s)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for line, want := range map[string]string{
		"extra": `unexpected argument "extra"`, "-socket s": `-socket is "s"; allowed: an absolute path`, "-interval 1ms": "allowed: 10ms to 1h",
	} {
		if _, err := parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
