package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The manifests of examples/kubernetes have no field that Kubernetes does not know, their containers that ask for the resource ask for
// one, and the command lines of the plugin are right.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/kubernetes/*.yaml")
	if err != nil || len(files) != 3 {
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
				if n, ok := c.Resources.Limits[Resource]; ok {
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
		t.Errorf("%d containers ask for %s, want 3", asking, Resource)
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
	default:
		var x core.Service
		return core.PodSpec{}, yaml.UnmarshalStrict(doc, &x)
	}
}
