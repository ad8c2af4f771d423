package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	testbed "k8s.io/client-go/testing"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
)

// allocation makes a claim to which each request has a device allocated: a request is NAME, or NAME@DRIVER.
func allocation(name string, requests ...string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	c.Status.Allocation = new(resourceapi.AllocationResult)
	for _, r := range requests {
		request, driver, other := strings.Cut(r, "@")
		if !other {
			driver = DriverName
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: request, Driver: driver, Pool: "here", Device: name + "-" + request})
	}
	return c
}

func these[T any](l ...T) []T { return l }

// asking makes a container that refers to claims of its pod: each is NAME, or NAME/REQUEST.
func asking(name string, claims ...string) core.Container {
	c := core.Container{Name: name}
	for _, x := range claims {
		claim, request, _ := strings.Cut(x, "/")
		c.Resources.Claims = append(c.Resources.Claims, core.ResourceClaim{Name: claim, Request: request})
	}
	return c
}

// podWith makes a pod whose claims have these names: "NAME" by itself, "made=NAME" from a template, "made=" where none was needed, and
// "made?" of a template that has none yet.
func podWith(claims []string, containers ...core.Container) *core.Pod {
	p := &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "p", UID: "uid-p"}, Spec: core.PodSpec{Containers: containers}}
	for _, x := range claims {
		if short, ok := strings.CutSuffix(x, "?"); ok {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, core.PodResourceClaim{Name: short, ResourceClaimTemplateName: new("template")})
			continue
		}
		short, made, generated := strings.Cut(x, "=")
		if !generated {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, core.PodResourceClaim{Name: short, ResourceClaimName: &short})
			continue
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, core.PodResourceClaim{Name: short, ResourceClaimTemplateName: new("template")})
		s := core.PodResourceClaimStatus{Name: short}
		if made != "" {
			s.ResourceClaimName = &made
		}
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, s)
	}
	return p
}

// One container has one device of this driver, whichever way its claims give it two.
func TestContainersOf(t *testing.T) {
	const both = "pod default/p, container main: claim one, request r and claim two, request r give it a device each; allowed: one device of " +
		"rdma.softvpi.io, since a container has one socket"
	one, two := allocation("one", "r"), allocation("two", "r")
	names := []string{"one", "two"}
	for name, x := range map[string]struct {
		claim  *resourceapi.ResourceClaim
		others []*resourceapi.ResourceClaim
		pod    *core.Pod
		change func(*core.Pod)
		want   string
	}{
		"alone":            {claim: one, pod: podWith(names[:1], asking("main", "one"))},
		"none asks":        {claim: one, pod: podWith(names, asking("main"))},
		"two":              {claim: one, others: these(two), pod: podWith(names, asking("main", "one", "two")), want: both},
		"two, the other":   {claim: two, others: these(one), pod: podWith(names, asking("main", "one", "two")), want: both},
		"one twice":        {claim: one, pod: podWith(names, asking("main", "one", "one/r"))},
		"by two names":     {claim: one, pod: podWith([]string{"one", "again=one"}, asking("main", "one", "again"))},
		"in two":           {claim: one, others: these(two), pod: podWith(names, asking("main", "one"), asking("side", "two"))},
		"shared by two":    {claim: one, pod: podWith(names, asking("main", "one"), asking("side", "one"))},
		"not of this":      {claim: one, others: these(two, allocation("x", "r")), pod: podWith([]string{"two", "x"}, asking("main", "two", "x"))},
		"another driver":   {claim: one, others: these(allocation("two", "r@gpu")), pod: podWith(names, asking("main", "one", "two"))},
		"this one has not": {claim: allocation("one", "r@gpu"), others: these(two), pod: podWith(names, asking("main", "one", "two"))},
		"not allocated": {claim: one, others: these(&resourceapi.ResourceClaim{ObjectMeta: two.ObjectMeta}),
			pod: podWith(names, asking("main", "one", "two"))},
		"the other gone": {claim: one, pod: podWith(names, asking("main", "one", "two"))},
		"of a template": {claim: one, others: these(two), pod: podWith([]string{"a=one", "b=two"}, asking("main", "a", "b")),
			want: both},
		"one of a template": {claim: one, others: these(two), pod: podWith([]string{"one", "b=two"}, asking("main", "one", "b")), want: both},
		"none was needed":   {claim: one, others: these(two), pod: podWith([]string{"one", "two="}, asking("main", "one", "two"))},
		"not made yet":      {claim: one, others: these(two), pod: podWith([]string{"one", "two?"}, asking("main", "one", "two"))},
		"no such name":      {claim: one, others: these(two), pod: podWith([]string{"one"}, asking("main", "one", "two"))},
		"two requests": {claim: allocation("one", "r", "s"), pod: podWith(names, asking("main", "one")),
			want: "container main: claim one, request r and claim one, request s give"},
		"by request":      {claim: allocation("one", "r", "s"), pod: podWith(names, asking("main", "one/r"), asking("side", "one/s"))},
		"both by request": {claim: allocation("one", "r", "s"), pod: podWith(names, asking("main", "one/s", "one/r")), want: "give it a device each"},
		"other's request": {claim: one, others: these(allocation("two", "r", "nic@gpu")), pod: podWith(names, asking("main", "one", "two/nic"))},
		"of alternatives": {claim: allocation("one", "r/vf"), others: these(two), pod: podWith(names, asking("main", "one/r", "two")), want: both},
		"init, one by one": {claim: one, others: these(two), pod: podWith(names, asking("main", "one")),
			change: func(p *core.Pod) { p.Spec.InitContainers = these(asking("first", "two")) }},
		"init": {claim: one, others: these(two), pod: podWith(names, asking("main", "one")), want: "pod default/p, container first: claim one",
			change: func(p *core.Pod) { p.Spec.InitContainers = these(asking("first", "two", "one")) }},
		"extended": {claim: one, others: these(two), pod: podWith(names, asking("main", "one"), asking("side")), want: both,
			change: func(p *core.Pod) {
				p.Status.ExtendedResourceClaimStatus = &core.PodExtendedResourceClaimStatus{ResourceClaimName: "two",
					RequestMappings: these(core.ContainerExtendedResourceRequest{ContainerName: "main", RequestName: "r"})}
			}},
		"extended, in two": {claim: one, others: these(two), pod: podWith(names, asking("main", "one"), asking("side")),
			change: func(p *core.Pod) {
				p.Status.ExtendedResourceClaimStatus = &core.PodExtendedResourceClaimStatus{ResourceClaimName: "two",
					RequestMappings: these(core.ContainerExtendedResourceRequest{ContainerName: "side", RequestName: "r"})}
			}},
		"ended": {claim: one, others: these(two), pod: podWith(names, asking("main", "one", "two")),
			change: func(p *core.Pod) { p.Status.Phase = core.PodFailed }},
		"the next of its name": {claim: one, others: these(two), pod: podWith(names, asking("main", "one", "two")),
			change: func(p *core.Pod) { p.UID = "uid-next" }},
		"no pod": {claim: one},
	} {
		var objects []runtime.Object
		for _, c := range x.others {
			objects = append(objects, c)
		}
		if x.pod != nil {
			if x.change != nil {
				x.change(x.pod)
			}
			objects = append(objects, x.pod)
		}
		claim := x.claim.DeepCopy()
		claim.Status.ReservedFor = these(resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: "uid-p"},
			resourceapi.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "p"})
		err := (&containersOf{api: fake.NewClientset(objects...), claim: claim}).check(t.Context())
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		var e *crowded
		if x.want != "" && !errors.As(err, &e) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

// What cannot be looked at is refused: a role without its rights shows at once, and not when two sockets meet. The error says which rule
// the role lacks, and that is in the file that it names.
func TestContainersUnknown(t *testing.T) {
	roles := objects[rbac.ClusterRole](t, "dra.yaml", "ClusterRole")
	if len(roles) != 1 || roles[0].Name != "softvpi-dra" {
		t.Fatal(roles)
	}
	for kind, want := range map[schema.GroupResource][2]string{
		pods: {"pod default/p, for which the claim is reserved: ", `apiGroups: [""], resources: ["pods"], verbs: ["get"]`},
		resourceClaims: {"claim default/two, which a container has beside this one: ",
			`apiGroups: ["resource.k8s.io"], resources: ["resourceclaims"], verbs: ["get"]`},
	} {
		c := fake.NewClientset(podWith([]string{"one", "two"}, asking("main", "one", "two")), allocation("two", "r"))
		c.PrependReactor("get", kind.Resource, func(a testbed.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "x", errors.New("no right"))
		})
		one := allocation("one", "r")
		one.Status.ReservedFor = these(resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: "uid-p"})
		err := (&containersOf{api: c, claim: one}).check(t.Context())
		var e *rightMissing
		if err == nil || !strings.HasPrefix(err.Error(), want[0]) || !apierrors.IsForbidden(err) || !errors.As(err, &e) ||
			!strings.Contains(err.Error(), "ClusterRole softvpi-dra is to have the rule "+want[1]+", as examples/kubernetes/dra.yaml") {
			t.Errorf("%s: %v, want %s", kind, err, want)
			continue
		}
		if !slices.ContainsFunc(roles[0].Rules, func(r rbac.PolicyRule) bool {
			return slices.Contains(r.APIGroups, e.of.Group) && slices.Contains(r.Resources, e.of.Resource) &&
				slices.Contains(r.Verbs, e.verb)
		}) {
			t.Errorf("the role of dra.yaml does not allow %s of %s", e.verb, e.of)
		}
	}
	if err := toGet(pods, apierrors.NewTimeoutError("slow", 1)); strings.Contains(err.Error(), "ClusterRole") {
		t.Error(err)
	}
}

// Of a claim that is prepared, others count if they are prepared, too, and pods if they have not started.
func TestContainersAgain(t *testing.T) {
	names := []string{"one", "two"}
	both := podWith(names, asking("main", "one", "two"))
	for name, x := range map[string]struct {
		claim    *resourceapi.ResourceClaim
		pod      *core.Pod
		prepared []types.UID
		phase    core.PodPhase
		want     bool
	}{
		"both":         {allocation("one", "r"), both, these[types.UID]("uid-one", "uid-two"), core.PodPending, true},
		"the other":    {allocation("one", "r"), both, these[types.UID]("uid-one"), core.PodPending, false},
		"started":      {allocation("one", "r"), both, these[types.UID]("uid-one", "uid-two"), core.PodRunning, false},
		"in two":       {allocation("one", "r"), podWith(names, asking("main", "one"), asking("side", "two")), nil, core.PodPending, false},
		"two requests": {allocation("one", "r", "s"), podWith(names, asking("main", "one")), nil, core.PodPending, true},
	} {
		pod := x.pod.DeepCopy()
		pod.Status.Phase = x.phase
		x.claim.Status.ReservedFor = these(resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: "uid-p"})
		err := (&containersOf{api: fake.NewClientset(pod, allocation("two", "r")), claim: x.claim,
			prepared: func(uid types.UID) bool { return slices.Contains(x.prepared, uid) }}).check(t.Context())
		if e := new(crowded); errors.As(err, &e) != x.want || !x.want && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Kubelet is told of it for each claim, and what is prepared already stays so when kubelet asks again.
func TestCrowdedContainer(t *testing.T) {
	n := newNode(t)
	n.start()
	n.published("shared-0", "shared-1", "vf-red")
	k := n.kubelet()
	pod := podWith([]string{"one", "two"}, asking("main", "one"))
	client := n.api.CoreV1().Pods("default")
	if _, err := client.Create(t.Context(), pod, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	one, two := n.claim("one", nil, "shared-0"), n.claim("two", nil, "shared-1")
	for _, name := range []string{"one", "two"} {
		c, err := n.api.ResourceV1().ResourceClaims("default").Get(t.Context(), name, meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Status.ReservedFor = these(resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: "uid-p"})
		if _, err := n.api.ResourceV1().ResourceClaims("default").Update(t.Context(), c, meta.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, wrong := n.prepare(k, one); wrong != "" {
		t.Fatal(wrong)
	}
	pod.Spec.Containers = slices.Clone(pod.Spec.Containers)
	pod.Spec.Containers[0] = asking("main", "one", "two")
	if _, err := client.Update(t.Context(), pod, meta.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	const both = "pod default/p, container main: claim one, request r0 and claim two, request r0 give it a device each"
	if _, wrong := n.prepare(k, two); !strings.Contains(wrong, both) {
		t.Error(wrong)
	}
	if _, wrong := n.prepare(k, one); wrong != "" {
		t.Error(wrong)
	}

	set := func(c core.Container) {
		t.Helper()
		pod.Spec.Containers = these(c)
		if _, err := client.Update(t.Context(), pod, meta.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	set(asking("main", "two")) // each is prepared for itself
	if _, wrong := n.prepare(k, two); wrong != "" {
		t.Fatal(wrong)
	}
	set(asking("main", "one", "two")) // and they meet in a pod that starts when kubelet and the plugin have started anew
	n.stop()
	n.start()
	n.published("shared-0", "shared-1", "vf-red")
	k = n.kubelet()
	for _, c := range []*dra.Claim{one, two} {
		if _, wrong := n.prepare(k, c); !strings.Contains(wrong, both) {
			t.Errorf("%s: %s", c.Name, wrong)
		}
	}
	n.api.PrependReactor("get", "pods", func(testbed.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no right"))
	})
	if _, wrong := n.prepare(k, one); wrong != "" { // what is prepared stays so where nothing can be seen
		t.Error(wrong)
	}
}
