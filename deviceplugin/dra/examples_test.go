package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/softvpi/softvpi/internal/driver/config"
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
	claims := objects[resourceapi.ResourceClaimTemplate](t, "dra-perftest.yaml", "ResourceClaimTemplate")
	if len(claims) != 1 || len(classes) != 2 {
		t.Fatal(len(claims), len(classes))
	}
	q := claims[0].Spec.Spec.Devices
	class := q.Requests[0].Exactly.DeviceClassName
	all := slices.Clone(classes[class])
	for _, c := range q.Config {
		all = append(all, resourceapi.DeviceAllocationConfiguration{Source: fromClaim, Requests: c.Requests,
			DeviceConfiguration: c.DeviceConfiguration})
	}
	if p, err := configure(all, q.Requests[0].Name, devices[class]); err != nil || p.Memory.String() != "64Mi" {
		t.Errorf("%+v, %v", p, err)
	}
}
