package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	engine "tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/softvpi/softvpi/deviceplugin/program"
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/verbs"
)

// node is a node with a driver, and an API server that has its object.
type node struct {
	t      *testing.T
	o      options
	api    *fake.Clientset
	driver *driver.Driver
	cfg    config.Config
	stop   func()
}

func newNode(t *testing.T) *node {
	t.Helper()
	cfg := driverbed.Config(t, config.Adapter{Name: "a", Address: netip.MustParseAddr("192.0.2.1"), Link: config.LinkSwitch,
		Wire: config.Wire{Switch: "s", Prefix: 24}})
	cfg.Containers = &config.Containers{Count: 2, Memory: 64 << 20}
	dir := filepath.Dir(cfg.Socket)
	n := &node{t: t, cfg: cfg, api: fake.NewClientset(&core.Node{ObjectMeta: meta.ObjectMeta{Name: "here", UID: "node-1"}})}
	n.o = options{node: "here", registry: filepath.Join(dir, "r"), data: filepath.Join(dir, "p"),
		Options: program.Options{Socket: cfg.Socket, CDI: filepath.Join(dir, "cdi"), Libraries: "/usr/lib/softvpi",
			Interval: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}}
	if err := os.Mkdir(n.o.registry, 0o700); err != nil {
		t.Fatal(err)
	}
	n.driver = driverbed.Start(t, cfg)
	red := api.FunctionRequest{Adapter: "a", Name: "red", Settings: []string{"address=192.0.2.11/24"}}
	if _, err := n.driver.CreateFunction(red); err != nil {
		t.Fatal(err)
	}
	return n
}

// start starts the plugin, and waits as kubelet does until it finds it.
func (n *node) start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, n.o, n.api) }()
	once := false
	n.stop = func() {
		if cancel(); once {
			return
		}
		once = true
		if err := <-ended; err != nil {
			n.t.Error(err)
		}
	}
	n.t.Cleanup(n.stop)
	r := registration.NewRegistrationClient(dial(n.t, filepath.Join(n.o.registry, DriverName+"-reg.sock")))
	info, err := r.GetInfo(n.t.Context(), &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		n.t.Fatal(err)
	}
	if info.Type != registration.DRAPlugin || info.Name != "rdma.softvpi.io" || info.Endpoint != filepath.Join(n.o.data, "dra.sock") ||
		!slices.Contains(info.SupportedVersions, dra.DRAPluginService) {
		n.t.Errorf("registered: %v", info)
	}
	if _, err := r.NotifyRegistrationStatus(n.t.Context(), &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		n.t.Fatal(err)
	}
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (n *node) kubelet() dra.DRAPluginClient {
	return dra.NewDRAPluginClient(dial(n.t, filepath.Join(n.o.data, "dra.sock")))
}

// published waits for a published list of devices by name, and returns it.
func (n *node) published(want ...string) map[string]resourceapi.Device {
	n.t.Helper()
	var names []string
	var found map[string]resourceapi.Device
	if await.Until(func() bool {
		l, err := n.api.ResourceV1().ResourceSlices().List(n.t.Context(), meta.ListOptions{})
		if err != nil {
			n.t.Fatal(err)
		}
		names = nil
		found = map[string]resourceapi.Device{}
		for i := range l.Items {
			s := &l.Items[i].Spec
			if s.Driver != DriverName || s.Pool.Name != "here" || s.NodeName == nil || *s.NodeName != "here" {
				n.t.Fatalf("%+v", s)
			}
			for _, d := range s.Devices {
				found[d.Name] = d
				names = append(names, d.Name)
			}
		}
		slices.Sort(names)
		return len(l.Items) > 0 && slices.Equal(names, want)
	}) {
		return found
	}
	n.t.Fatalf("published are %v, want %v", names, want)
	return nil
}

// claim makes a claim that has devices allocated, as the scheduler does: requests are r0, r1 and so on.
func (n *node) claim(name string, configs []resourceapi.DeviceAllocationConfiguration, devices ...string) *dra.Claim {
	n.t.Helper()
	c := &resourceapi.ResourceClaim{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Config: configs}}
	for i, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: fmt.Sprint("r", i), Driver: DriverName, Pool: "here", Device: d})
	}
	if _, err := n.api.ResourceV1().ResourceClaims("default").Create(n.t.Context(), c, meta.CreateOptions{}); err != nil {
		n.t.Fatal(err)
	}
	return &dra.Claim{Namespace: "default", Name: name, Uid: string(c.UID)}
}

// prepare prepares a claim; what is wrong with it is text.
func (n *node) prepare(k dra.DRAPluginClient, c *dra.Claim) ([]*dra.Device, string) {
	n.t.Helper()
	r, err := k.NodePrepareResources(n.t.Context(), &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{c}}, grpc.WaitForReady(true))
	if err != nil {
		n.t.Fatal(err)
	}
	return r.Claims[c.Uid].Devices, r.Claims[c.Uid].Error
}

func (n *node) unprepare(k dra.DRAPluginClient, c *dra.Claim) string {
	n.t.Helper()
	r, err := k.NodeUnprepareResources(n.t.Context(), &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{c}}, grpc.WaitForReady(true))
	if err != nil {
		n.t.Fatal(err)
	}
	return r.Claims[c.Uid].Error
}

// socket returns the directory that a container with the CDI devices mounts, as an engine finds it.
func (n *node) socket(devices []*dra.Device) string {
	n.t.Helper()
	cache, err := engine.NewCache(engine.WithSpecDirs(n.o.CDI), engine.WithAutoRefresh(false))
	if err != nil || len(devices) != 1 || len(devices[0].CdiDeviceIds) != 1 {
		n.t.Fatal(devices, err)
	}
	x := cache.GetDevice(devices[0].CdiDeviceIds[0])
	if x == nil {
		n.t.Fatalf("engines do not find %v: %v", devices, cache.GetErrors())
	}
	if m := x.ContainerEdits.Mounts; len(m) != 2 || m[0].ContainerPath != "/run/softvpi" || m[1].HostPath != "/usr/lib/softvpi" ||
		!slices.Contains(x.ContainerEdits.Env, "SOFTVPI_SOCKET=/run/softvpi/driver.sock") {
		n.t.Errorf("the engine finds %+v", x.ContainerEdits)
	}
	return filepath.Join(x.ContainerEdits.Mounts[0].HostPath, paths.ContainerSocket)
}

func (n *node) quota(number int) uint64 { return n.driver.Status().Held.Containers[number].MemoryLimit }

// The slices of the node have what the driver has, with what claims select by, as long as the driver is ready.
func TestPublished(t *testing.T) {
	n := newNode(t)
	n.start()
	l := n.published("shared-0", "shared-1", "vf-red")
	a := l["vf-red"].Attributes
	if *a["type"].StringValue != "vf" || *a["function"].StringValue != "red" || *a["linkLayer"].StringValue != "Ethernet" ||
		*a["port"].IntValue != 1 || *a["adapter"].StringValue != "a" || *a["mac"].StringValue == "" ||
		*a["guid"].StringValue != guid(n.driver.Functions()[0].GUID) || n.driver.Functions()[0].GUID == 0 || *a["vlan"].IntValue != 0 {
		t.Errorf("%+v", a)
	}
	s := l["shared-0"]
	if q := s.Capacity["memory"]; q.Value.String() != "64Mi" || *s.Attributes["type"].StringValue != "shared" {
		t.Errorf("%+v", s)
	}
	w, err := health.NewDRAResourceHealthClient(dial(t, filepath.Join(n.o.data, "dra.sock"))).NodeWatchResources(t.Context(),
		&health.NodeWatchResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want health.HealthStatus) {
		t.Helper()
		for {
			r, err := w.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Devices, func(d *health.DeviceHealth) bool { return d.Health != want }) && len(r.Devices) == 3 {
				return
			}
		}
	}
	expect(health.HealthStatus_HEALTHY)
	if err := n.driver.Close(); err != nil {
		t.Fatal(err)
	}
	expect(health.HealthStatus_UNHEALTHY)
	n.published()
	n.driver = driverbed.Start(t, n.cfg)
	n.published("shared-0", "shared-1", "vf-red")
	expect(health.HealthStatus_HEALTHY)
	if err := n.driver.RemoveFunction("red"); err != nil {
		t.Fatal(err)
	}
	n.published("shared-0", "shared-1")
}

// A claim has a socket with its quota, or a virtual function alone with its settings, until it is taken back: over restarts of the plugin
// and of the driver, and however often kubelet asks.
func TestClaims(t *testing.T) {
	n := newNode(t)
	n.start()
	n.published("shared-0", "shared-1", "vf-red")
	k := n.kubelet()
	one := n.claim("one", list(opaque(fromClass, `, "memory": "32Mi"`), opaque(fromClaim, `, "memory": "16Mi"`)), "shared-1")
	vf := n.claim("vf", list(opaque(fromClass, `, "max": 500, "vlan": 7`)), "vf-red")
	given, wrong := n.prepare(k, one)
	if wrong != "" || n.socket(given) != paths.Container(n.cfg.Socket, 1) || n.quota(1) != 16<<20 || n.quota(0) != 64<<20 {
		t.Fatal(given, wrong, n.quota(0), n.quota(1))
	}
	function, wrong := n.prepare(k, vf)
	if f := n.driver.Functions()[0]; wrong != "" || f.Max != 500 || f.VLAN != 7 {
		t.Fatal(wrong, f)
	}
	p, err := verbs.Attach(t.Context(), n.socket(function))
	if err != nil {
		t.Fatal(err)
	}
	if l, err := p.Devices(t.Context()); err != nil || len(l) != 1 {
		t.Errorf("the container sees %d devices, %v", len(l), err)
	}
	p.Close()
	two := n.claim("two", nil, "shared-1")
	if _, wrong := n.prepare(k, two); !strings.Contains(wrong, "device shared-1: claim default/one (uid-one) has it") {
		t.Error(wrong)
	}

	n.stop() // the plugin ends; the next one knows
	n.start()
	k = n.kubelet()
	if again, wrong := n.prepare(k, one); wrong != "" || n.socket(again) != n.socket(given) || n.quota(1) != 16<<20 {
		t.Error(again, wrong, n.quota(1))
	}
	if err := n.driver.Close(); err != nil { // the driver ends; the next one is told
		t.Fatal(err)
	}
	if wrong := n.unprepare(k, vf); wrong == "" {
		t.Error("a function is taken back without a driver, and has its settings still")
	}
	n.driver = driverbed.Start(t, n.cfg)
	n.published("shared-0", "shared-1", "vf-red")
	await.Eventually(t, "the quota of the prepared claim", func() bool { return n.quota(1) == 16<<20 })

	for range 2 {
		for _, c := range []*dra.Claim{one, vf} {
			if wrong := n.unprepare(k, c); wrong != "" {
				t.Error(c.Name, wrong)
			}
		}
	}
	if f := n.driver.Functions()[0]; n.quota(1) != 64<<20 || f.Max != 0 || f.VLAN != 0 {
		t.Error(n.quota(1), f)
	}
	if left, _ := os.ReadDir(n.o.CDI); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if _, wrong := n.prepare(k, n.claim("three", nil, "shared-1", "vf-red")); wrong != "" {
		t.Error(wrong)
	}
}

// What cannot be had is refused, with the reason, and leaves nothing.
func TestRefused(t *testing.T) {
	n := newNode(t)
	n.start()
	n.published("shared-0", "shared-1", "vf-red")
	k := n.kubelet()
	for name, x := range map[string]struct {
		configs []resourceapi.DeviceAllocationConfiguration
		device  string
		want    string
	}{
		"none":    {nil, "shared-7", "device shared-7 of pool here: the driver has none of that name"},
		"unknown": {list(opaque(fromClaim, `, "qps": 7`)), "shared-0", `unknown field "qps"`},
		"more":    {list(opaque(fromClaim, `, "memory": "1Gi"`)), "shared-0", "memory is 1Gi; allowed in a claim: at most 64Mi"},
		"tenant":  {list(opaque(fromClaim, `, "vlan": 9`)), "vf-red", "allowed in a DeviceClass"},
	} {
		if _, wrong := n.prepare(k, n.claim(name, x.configs, x.device)); !strings.Contains(wrong, x.want) {
			t.Errorf("%s: %s, want %s", name, wrong, x.want)
		}
	}
	if wrong := n.unprepare(k, &dra.Claim{Namespace: "default", Name: "never", Uid: "never"}); wrong != "" {
		t.Error(wrong)
	}
	if left, _ := os.ReadDir(n.o.CDI); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	n.stop()
	if err := os.WriteFile(filepath.Join(n.o.data, checkpointFile), []byte(`{"version": 9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), n.o, n.api); err == nil || !strings.Contains(err.Error(), "claims.json: version is 9; allowed: 1") {
		t.Error(err)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for line, want := range map[string]string{
		"": `-node is ""; allowed: the name of this node`, "-node n extra": `unexpected argument "extra"`,
		"-node n -data d": `-data is "d"; allowed: an absolute path`, "-node n -interval 1ms": "allowed: 10ms to 1h",
	} {
		if _, err := parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestManual: the page explains every option of the program, and its own name.
func TestManual(t *testing.T) {
	var b strings.Builder
	if err := writeManual(&b, "1.2"); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(b.String(), `\-`, "-")
	for _, want := range []string{`.TH "SOFTVPI-DRA-DRIVER" 1 "" "1.2"`, "-node name", "-kubeconfig file", "-data directory",
		"(default: 2s)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}
