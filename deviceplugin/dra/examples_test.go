package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// objects decodes those of one kind in a manifest.
func objects[T any](t *testing.T, file, kind string) (list []T) {
	t.Helper()
	b, err := os.ReadFile("../../examples/kubernetes/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range bytes.Split(b, []byte("\n---\n")) {
		var is struct{ Kind string }
		if err := yaml.Unmarshal(doc, &is); err != nil {
			t.Fatal(err)
		}
		if is.Kind != kind {
			continue
		}
		var x T
		if err := yaml.UnmarshalStrict(doc, &x); err != nil {
			t.Fatalf("%s, %s: %v", file, kind, err)
		}
		list = append(list, x)
	}
	return list
}

// The manifests' command line is right; the driver's, the plugin's and kubelet's paths are the same on the node and in the containers;
// parameters of classes and claims are those that the plugin takes, each for its type, and the claim's within its class's.
func TestExamples(t *testing.T) {
	sets := objects[apps.DaemonSet](t, "dra.yaml", "DaemonSet")
	if len(sets) != 1 {
		t.Fatal(len(sets))
	}
	pod := &sets[0].Spec.Template.Spec
	driver, own := pod.Containers[0], pod.Containers[1]
	t.Setenv("NODE_NAME", "here")
	o, err := parse(own.Command[1:])
	if err != nil || own.Command[0] != programName || own.Env[0].Name != "NODE_NAME" {
		t.Fatal(own.Command, err)
	}
	for _, path := range []string{o.registry, o.data, o.CDI} {
		if !slices.ContainsFunc(own.VolumeMounts, func(m core.VolumeMount) bool {
			return m.MountPath == path && slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool {
				return v.Name == m.Name && v.HostPath.Path == path
			})
		}) {
			t.Errorf("%s is not the node's in the container", path)
		}
	}
	if !slices.Contains(driver.Command, o.Socket) || pod.ServiceAccountName != "softvpi-dra" {
		t.Errorf("the driver's command is %q, and the plugin's socket %s", driver.Command, o.Socket)
	}
	limits, err := config.ParseContainers(driver.Command[len(driver.Command)-1])
	if err != nil {
		t.Fatal(err)
	}
	devices := map[string]*device{"rdma-shared": {name: "shared-0", memory: uint64(limits.Memory)}, "rdma-vf": {name: "vf-a", function: "a"}}
	classes := map[string][]resourceapi.DeviceAllocationConfiguration{}
	for _, c := range objects[resourceapi.DeviceClass](t, "dra.yaml", "DeviceClass") {
		for _, x := range c.Spec.Config {
			classes[c.Name] = append(classes[c.Name], resourceapi.DeviceAllocationConfiguration{Source: fromClass,
				DeviceConfiguration: x.DeviceConfiguration})
		}
		if _, err := configure(classes[c.Name], "device", devices[c.Name]); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	for file, right := range map[string]func(*Parameters) bool{
		"dra-perftest.yaml": func(p *Parameters) bool { return p.Memory.String() == "64Mi" },
		"dra-vf.yaml":       func(p *Parameters) bool { return *p.Max == 5000 },
	} {
		claims := objects[resourceapi.ResourceClaimTemplate](t, file, "ResourceClaimTemplate")
		if len(claims) != 1 || len(classes) != 2 {
			t.Fatal(file, len(claims), len(classes))
		}
		q := claims[0].Spec.Spec.Devices
		class := q.Requests[0].Exactly.DeviceClassName
		all := slices.Clone(classes[class])
		for _, c := range q.Config {
			all = append(all, resourceapi.DeviceAllocationConfiguration{Source: fromClaim, Requests: c.Requests,
				DeviceConfiguration: c.DeviceConfiguration})
		}
		if p, err := configure(all, q.Requests[0].Name, devices[class]); err != nil || !right(&p) {
			t.Errorf("%s: %+v, %v", file, p, err)
		}
		for _, job := range objects[batch.Job](t, file, "Job") { // its one container asks for what its claim has
			pod := &job.Spec.Template.Spec
			if len(pod.ResourceClaims) != 1 || *pod.ResourceClaims[0].ResourceClaimTemplateName != claims[0].Name ||
				len(pod.Containers) != 1 || !slices.Equal(pod.Containers[0].Resources.Claims,
				[]core.ResourceClaim{{Name: pod.ResourceClaims[0].Name}}) {
				t.Errorf("%s: %s has %+v", file, job.Name, pod)
			}
		}
	}
}

// patched returns what the daemon set of dra.yaml is with a patch, as the API server applies it (a strategic merge patch).
func patched(t *testing.T, file string) (before, after *apps.DaemonSet) {
	t.Helper()
	b, err := os.ReadFile("../../examples/kubernetes/" + file)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	before = &objects[apps.DaemonSet](t, "dra.yaml", "DaemonSet")[0]
	original, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = strategicpatch.StrategicMergePatch(original, patch, apps.DaemonSet{}); err != nil {
		t.Fatal(err)
	}
	after = new(apps.DaemonSet)
	if err := yaml.UnmarshalStrict(b, after); err != nil {
		t.Fatal(err)
	}
	return before, after
}

// ofDriver returns the configuration that the command line of a driver's container makes on a node, as softvpi up reads it, and the value
// of one of its options.
func ofDriver(t *testing.T, set *apps.DaemonSet) (c config.Config, options map[string]string) {
	t.Helper()
	pod := &set.Spec.Template.Spec
	driver := pod.Containers[0]
	options = map[string]string{}
	for i := 2; i < len(driver.Command); i += 2 {
		value := driver.Command[i+1]
		for _, e := range driver.Env {
			if e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "status.hostIP" {
				e.Value = "192.0.2.1"
			}
			value = strings.ReplaceAll(value, "$("+e.Name+")", e.Value)
		}
		options[driver.Command[i]] = value
	}
	if path := options["--config"]; path != "" {
		for _, m := range driver.VolumeMounts {
			name, in := strings.CutPrefix(path, m.MountPath+"/")
			for _, v := range pod.Volumes {
				if !in || v.Name != m.Name {
					continue
				}
				for _, x := range objects[core.ConfigMap](t, "dra-vf.yaml", "ConfigMap") {
					if x.Namespace != set.Namespace || x.Name != v.ConfigMap.Name {
						continue
					}
					path = filepath.Join(t.TempDir(), name)
					if err := os.WriteFile(path, []byte(x.Data[name]), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var err error
		if c, err = config.Load(path); err != nil {
			t.Fatal(err)
		}
	}
	a, err := config.ParseAdapter(options["--adapter"])
	if err != nil {
		t.Fatal(err)
	}
	limits, err := config.ParseContainers(options["--containers"])
	if err != nil {
		t.Fatal(err)
	}
	c.Adapters, c.Containers, c.Socket = []config.Adapter{a}, &limits, options["--socket"]
	if c, err = c.Complete(); err != nil {
		t.Fatal(err)
	}
	return c, options
}

// TestExampleOfFunctions: with its patch the daemon set is what it was but for the driver's wire, the right that the wire takes, and the
// functions; the driver takes that configuration, and makes of it as many devices as it names, which the class of the claim is for.
func TestExampleOfFunctions(t *testing.T) {
	before, after := patched(t, "dra-vf-driver.yaml")
	was, has := ofDriver(t, before)
	c, options := ofDriver(t, after)
	if a := c.Adapters[0]; was.Adapters[0].Link != "" || a.Link != config.LinkInterface || a.Interface != "eth0" ||
		a.Name != was.Adapters[0].Name || a.Address != was.Adapters[0].Address {
		t.Errorf("%+v, which was %+v", a, was.Adapters[0])
	}
	for _, same := range []string{"--socket", "--state", "--containers"} {
		if options[same] != has[same] {
			t.Errorf("%s is %s, and was %s", same, options[same], has[same])
		}
	}
	driver := &after.Spec.Template.Spec.Containers[0]
	if k := driver.SecurityContext; *k.AllowPrivilegeEscalation || !slices.Equal(k.Capabilities.Drop, []core.Capability{"ALL"}) ||
		!slices.Equal(k.Capabilities.Add, []core.Capability{"NET_RAW"}) {
		t.Errorf("%+v", k)
	}
	if i := slices.IndexFunc(after.Spec.Template.Spec.Volumes, func(v core.Volume) bool { return v.ConfigMap != nil }); i < 0 {
		t.Error("there is no configuration")
	} else {
		after.Spec.Template.Spec.Volumes = slices.Delete(after.Spec.Template.Spec.Volumes, i, i+1)
	}
	old := &before.Spec.Template.Spec.Containers[0]
	driver.Command, driver.SecurityContext = old.Command, old.SecurityContext
	driver.Env = slices.DeleteFunc(driver.Env, func(e core.EnvVar) bool { return e.Name == "INTERFACE" })
	driver.VolumeMounts = slices.DeleteFunc(driver.VolumeMounts, func(m core.VolumeMount) bool { return m.Name == "config" })
	slices.SortFunc(after.Spec.Template.Spec.Volumes, byName)
	slices.SortFunc(before.Spec.Template.Spec.Volumes, byName)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the patch changes more:\n%+v\n%+v", before, after)
	}

	x := driverbed.Config(t, config.Adapter{Name: c.Adapters[0].Name, Address: c.Adapters[0].Address, Link: config.LinkSwitch,
		Wire: config.Wire{Switch: "node", Prefix: 24}}) // an interface takes the capability
	x.VirtualSwitches, x.Containers = c.VirtualSwitches, c.Containers
	driverbed.Start(t, x)
	want := []string{"vf-pod-0", "vf-pod-1", "vf-pod-2", "vf-pod-3"}
	await.Eventually(t, "devices for the claims, with their links up", func() bool {
		devices, err := driverAPI{api.NewClient(x.Socket)}.devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range devices {
			if d.function != "" && d.why == "" && *d.attributes["type"].StringValue == typeVF &&
				*d.attributes["adapter"].StringValue == c.Adapters[0].Name {
				names = append(names, d.name)
			}
		}
		return slices.Equal(names, want)
	})
}

func byName(a, b core.Volume) int { return strings.Compare(a.Name, b.Name) }
