package main

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the program gets from the API server by itself, and is to have the right to get.
var (
	pods           = schema.GroupResource{Resource: "pods"}
	resourceClaims = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
)

// rightMissing is what the API server does not let this program do: the ClusterRole is one of another version, as a rule.
type rightMissing struct {
	verb string
	of   schema.GroupResource
	err  error // of the API server
}

// Error names the rule that is to be added, and the file that has it.
func (e *rightMissing) Error() string {
	return fmt.Sprintf(`%v; the ClusterRole softvpi-dra is to have the rule apiGroups: [%q], resources: [%q], verbs: [%q], as `+
		`examples/kubernetes/dra.yaml of this version has it: apply that`, e.err, e.of.Group, e.of.Resource, e.verb)
}

func (e *rightMissing) Unwrap() error { return e.err }

// toGet returns the error of getting a resource, with the rule that is missing if that is why.
func toGet(of schema.GroupResource, err error) error {
	if apierrors.IsForbidden(err) {
		return &rightMissing{"get", of, err}
	}
	return err
}
