package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// part is a device of this driver that a container is given: by a claim, for one of its requests.
type part struct{ claim, request string }

// crowded is a container that is given more than one device of this driver.
type crowded struct {
	namespace, pod, container string
	a, b                      part
}

// Error names what is to be changed: one of the two is.
func (e *crowded) Error() string {
	return fmt.Sprintf("pod %s/%s, container %s: claim %s, request %s and claim %s, request %s give it a device each; allowed: one device of %s, "+
		"since a container has one socket", e.namespace, e.pod, e.container, e.a.claim, e.a.request, e.b.claim, e.b.request, DriverName)
}

// containersOf looks at the containers of pods that a claim is reserved for.
type containersOf struct {
	api   kubernetes.Interface
	claim *resourceapi.ResourceClaim
	// prepared reports whether a claim is prepared; nil: this one is not, and all others count.
	prepared func(types.UID) bool
	parts    map[string][]part // of the claims that were looked at, by name
}

// check refuses a claim of which a container is to have a device beside another of this driver: engines would mount one socket over
// the other. Kubernetes does not tell drivers whose claims meet in a container, so that the pods say it.
//
// A claim that is prepared already, for other pods, is refused as well when kubelet asks for it again, if it meets another that is
// prepared, in a pod that has not started: the other would not be asked for, either. (One that is not prepared looks for itself.) Kubelet
// asks again once it has started anew, since what it keeps of a claim over that does not say that it is prepared. As long as it runs it
// asks for a claim once, until the last pod that has it ends (Manager.PrepareResources and ClaimInfo of Kubernetes' pkg/kubelet/cm/dra):
// a pod of which every claim is prepared for others starts without a call to the driver, which can refuse nothing then.
func (c *containersOf) check(ctx context.Context) error {
	c.parts = map[string][]part{c.claim.Name: partsOf(c.claim)}
	if len(c.parts[c.claim.Name]) == 0 {
		return nil
	}
	for _, r := range c.claim.Status.ReservedFor {
		if r.APIGroup != "" || r.Resource != "pods" {
			continue
		}
		pod, err := c.api.CoreV1().Pods(c.claim.Namespace).Get(ctx, r.Name, meta.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("pod %s/%s, for which the claim is reserved: %w", c.claim.Namespace, r.Name, toGet(pods, err))
		case c.prepared != nil && pod.Status.Phase == core.PodRunning:
			continue // its containers run
		case pod.UID != r.UID || pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed:
			continue // it has ended, or another has its name
		}
		for _, list := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if err := c.container(ctx, pod, &list[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// container looks at one container. What it has without this claim is left to the claims that give it.
func (c *containersOf) container(ctx context.Context, pod *core.Pod, x *core.Container) error {
	var all []part
	add := func(name, request string) error {
		list, err := c.of(ctx, name)
		for _, p := range list {
			if (request == "" || p.request == request) && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
		return err
	}
	for _, r := range x.Resources.Claims {
		i := slices.IndexFunc(pod.Spec.ResourceClaims, func(p core.PodResourceClaim) bool { return p.Name == r.Name })
		if i < 0 {
			continue
		}
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue // it is not made yet: it looks at the container itself, once it is
		}
		if err := add(*name, r.Request); err != nil {
			return err
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, m := range s.RequestMappings {
			if m.ContainerName != x.Name {
				continue
			}
			if err := add(s.ResourceClaimName, m.RequestName); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(all, func(a, b part) int { return cmp.Or(cmp.Compare(a.claim, b.claim), cmp.Compare(a.request, b.request)) })
	own := slices.IndexFunc(all, func(p part) bool { return p.claim == c.claim.Name })
	if len(all) < 2 || own < 0 {
		return nil
	}
	other := 0
	if own == 0 {
		other = 1
	}
	first, second := min(own, other), max(own, other)
	return &crowded{namespace: pod.Namespace, pod: pod.Name, container: x.Name, a: all[first], b: all[second]}
}

// of returns the devices of this driver that a claim gives. One that is gone gives none, and so does one that does not count.
func (c *containersOf) of(ctx context.Context, name string) ([]part, error) {
	if list, ok := c.parts[name]; ok {
		return list, nil
	}
	x, err := c.api.ResourceV1().ResourceClaims(c.claim.Namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("claim %s/%s, which a container has beside this one: %w", c.claim.Namespace, name, toGet(resourceClaims, err))
	}
	if err == nil && (c.prepared == nil || c.prepared(x.UID)) {
		c.parts[name] = partsOf(x)
	} else {
		c.parts[name] = nil
	}
	return c.parts[name], nil
}

// partsOf returns the devices of this driver that were allocated to a claim, by the request that containers name.
func partsOf(c *resourceapi.ResourceClaim) (list []part) {
	if c.Status.Allocation == nil {
		return nil
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver == DriverName {
			list = append(list, part{c.Name, resourceclaim.BaseRequestRef(r.Request)})
		}
	}
	return list
}
