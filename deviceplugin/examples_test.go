package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
)

// The manifests of examples/kubernetes have no field that Kubernetes does not know, their containers that ask for the resource ask for
// one, and the command lines of the plugin are right.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/kubernetes/*.yaml")
	if err != nil || len(files) != 7 {
		t.Fatal(files, err)
	}
	asking := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range bytes.Split(b, []byte("\n---\n")) {
			var kind struct{ Kind string }
			if err := yaml.Unmarshal(doc, &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			pod, err := podIn(kind.Kind, doc)
			if err != nil {
				t.Errorf("%s, %s: %v", file, kind.Kind, err)
			}
			for _, c := range pod.Containers {
				if n, ok := c.Resources.Limits[Shared]; ok {
					if asking++; n.Value() != 1 {
						t.Errorf("%s: %s asks for %d", file, c.Name, n.Value())
					}
				}
				if len(c.Command) > 0 && c.Command[0] == "softvpi-device-plugin" {
					if _, err := parse(c.Command[1:]); err != nil {
						t.Errorf("%s: %s: %v", file, strings.Join(c.Command, " "), err)
					}
				}
			}
		}
	}
	if asking != 3 {
		t.Errorf("%d containers ask for %s, want 3", asking, Shared)
	}
}

// podIn decodes a manifest, and returns the pod that it makes.
func podIn(kind string, doc []byte) (core.PodSpec, error) {
	switch kind {
	case "DaemonSet":
		var x apps.DaemonSet
		err := yaml.UnmarshalStrict(doc, &x)
		return x.Spec.Template.Spec, err
	case "Job":
		var x batch.Job
		err := yaml.UnmarshalStrict(doc, &x)
		return x.Spec.Template.Spec, err
	}
	other, ok := map[string]any{"Service": new(core.Service), "ServiceAccount": new(core.ServiceAccount),
		"ClusterRole": new(rbac.ClusterRole), "ClusterRoleBinding": new(rbac.ClusterRoleBinding), "DeviceClass": new(resource.DeviceClass),
		"ResourceClaimTemplate": new(resource.ResourceClaimTemplate), "ConfigMap": new(core.ConfigMap)}[kind]
	if !ok {
		return core.PodSpec{}, fmt.Errorf("a %s is not looked at", kind)
	}
	return core.PodSpec{}, yaml.UnmarshalStrict(doc, other)
}

// container returns a container of a pod by its name.
func container(t *testing.T, list []core.Container, name string) core.Container {
	t.Helper()
	for _, c := range list {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no container %s", name)
	return core.Container{}
}

// hostPath returns where a path in a container is on the node.
func hostPath(t *testing.T, pod *core.PodSpec, c core.Container, path string) string {
	t.Helper()
	for _, m := range c.VolumeMounts {
		in, ok := strings.CutPrefix(path+"/", m.MountPath+"/")
		for _, v := range pod.Volumes {
			if ok && v.Name == m.Name && v.HostPath != nil {
				return filepath.Join(v.HostPath.Path, in)
			}
		}
	}
	t.Fatalf("%s: %s is not of the node", c.Name, path)
	return ""
}

// after returns the word behind an option of a command line.
func after(t *testing.T, c core.Container, option string) string {
	t.Helper()
	for i, w := range c.Command[:len(c.Command)-1] {
		if w == option {
			return c.Command[i+1]
		}
	}
	t.Fatalf("%s: there is no %s in %q", c.Name, option, c.Command)
	return ""
}

// TestDaemonSet: what the parts of the daemon set tell each other is the same: the socket of the driver and of the plugin, inside and on
// the node; the directories of kubelet and of CDI, as the plugin has them by itself; and the libraries, where the first container puts
// them and the plugin has pods mount them.
func TestDaemonSet(t *testing.T) {
	b, err := os.ReadFile("../examples/kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod, err := podIn("DaemonSet", b)
	if err != nil {
		t.Fatal(err)
	}
	libraries, driver, own := container(t, pod.InitContainers, "libraries"), container(t, pod.Containers, "driver"),
		container(t, pod.Containers, "plugin")
	o, err := parse(own.Command[1:])
	if err != nil {
		t.Fatal(err)
	}
	if s := after(t, driver, "--socket"); s != o.Socket || hostPath(t, &pod, driver, s) != s || hostPath(t, &pod, own, s) != s {
		t.Errorf("the driver is at %s, and the plugin looks at %s", s, o.Socket)
	}
	if at := hostPath(t, &pod, own, o.kubelet); at+"/" != plugin.DevicePluginPath {
		t.Errorf("kubelet's directory is %s, want %s", at, plugin.DevicePluginPath)
	}
	if at := hostPath(t, &pod, own, o.CDI); at != o.CDI {
		t.Errorf("the specification goes to %s on the node, and engines look at %s", at, o.CDI)
	}
	put := hostPath(t, &pod, libraries, filepath.Join(after(t, libraries, "--prefix"), "lib", "softvpi"))
	if put != o.Libraries {
		t.Errorf("the libraries are put into %s, and mounted from %s", put, o.Libraries)
	}
	for _, c := range []core.Container{libraries, driver, own} {
		if c.Image != "softvpi" || c.Command[0] != "softvpi" && c.Command[0] != "softvpi-device-plugin" {
			t.Errorf("%s: %s, %q: want a program of make image", c.Name, c.Image, c.Command)
		}
	}
}
