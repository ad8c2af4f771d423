package main

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/softvpi/softvpi/internal/api"
)

// opaque returns a configuration of this driver; fields are those behind apiVersion and kind.
func opaque(source resourceapi.AllocationConfigSource, fields string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	raw := []byte(`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters"` + fields + `}`)
	c := resourceapi.DeviceAllocationConfiguration{Source: source, Requests: requests}
	c.Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: DriverName, Parameters: runtime.RawExtension{Raw: raw}}
	return c
}

// Parameters with a field that there is not, or a value that is not allowed, are refused with what is.
func TestWrongParameters(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                      "parameters: unexpected EOF",
		`{"kind": "Parameters"}`: `apiVersion is ""; allowed: rdma.softvpi.io/v1`,
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "X"}`:                           `kind is "X"; allowed: Parameters`,
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "quota": 1}`:      `unknown field "quota"`,
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters"} {}`:               "more than one object",
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "memory":"1Ki"}`:  "memory is 1Ki; allowed: 8Mi to 1Pi",
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "memory":"x"}`:    "parameters: quantities must match",
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "descriptors":1}`: "descriptors is 1; allowed: 4 to 1048576",
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "max": 0.5}`:      "max is 0.5; allowed: 0 (no limit), 1 to 1000000",
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "min": -1}`:       "min is -1; allowed: 0 (none)",
		`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "vlan": 4095}`:    "vlan is 4095; allowed: 0 (none) to 4094",
	} {
		if _, err := decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A claim's parameters count within those of its class and of the driver; what tells tenants apart is the class's alone.
func TestConfigure(t *testing.T) {
	shared := &device{name: "shared-0", memory: 64 << 20, descriptors: 32}
	vf := &device{name: "vf-red", function: "red", has: api.FunctionStatus{Max: 800}}
	for _, x := range []struct {
		name   string
		d      *device
		list   []resourceapi.DeviceAllocationConfiguration
		memory string
		max    float64
		vlan   int64
		wrong  string
	}{
		{name: "none", d: shared},
		{name: "less than the driver", d: shared, list: list(opaque(fromClaim, `, "memory": "16Mi"`)), memory: "16Mi"},
		{name: "more than the driver", d: shared, list: list(opaque(fromClaim, `, "memory": "1Gi"`)),
			wrong: "memory is 1Gi; allowed in a claim: at most 64Mi"},
		{name: "a class may", d: shared, list: list(opaque(fromClass, `, "memory": "1Gi"`)), memory: "1Gi"},
		{name: "a claim within its class, which stands behind it", d: shared,
			list: list(opaque(fromClaim, `, "memory": "512Mi"`), opaque(fromClass, `, "memory": "1Gi"`)), memory: "512Mi"},
		{name: "descriptors", d: shared, list: list(opaque(fromClaim, `, "descriptors": 33`)),
			wrong: "descriptors is 33; allowed in a claim: at most 32"},
		{name: "for another request", d: shared, list: list(opaque(fromClaim, `, "memory": "1Gi"`, "other"))},
		{name: "for the request's alternative", d: shared, list: list(opaque(fromClaim, `, "memory": "8Mi"`, "one")), memory: "8Mi"},
		{name: "of the other type", d: shared, list: list(opaque(fromClass, `, "vlan": 7, "max": 5`)),
			wrong: "max, vlan: not of a device of type shared"},
		{name: "of the other type", d: vf, list: list(opaque(fromClass, `, "memory": "64Mi"`)), wrong: "memory: not of a device of type vf"},
		{name: "a class's VLAN", d: vf, list: list(opaque(fromClass, `, "vlan": 7, "max": 2000`),
			opaque(fromClaim, `, "max": 1500`)), max: 1500, vlan: 7},
		{name: "a claim's VLAN", d: vf, list: list(opaque(fromClaim, `, "vlan": 7`)), wrong: "allowed in a DeviceClass, and not in a claim"},
		{name: "a claim's trust", d: vf, list: list(opaque(fromClaim, `, "trust": true`)),
			wrong: "allowed in a DeviceClass, and not in a claim"},
		{name: "more than the function", d: vf, list: list(opaque(fromClaim, `, "max": 900`)),
			wrong: "max is 900; allowed in a claim: at most 800"},
		{name: "no limit", d: vf, list: list(opaque(fromClaim, `, "max": 0`)), wrong: "max is 0; allowed in a claim: at most 800"},
		{name: "min and max", d: vf, list: list(opaque(fromClass, `, "max": 5, "min": 6`)), wrong: "min is 6; allowed: at most max, 5"},
	} {
		p, err := configure(x.list, "one/first", x.d)
		if x.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), x.wrong) {
				t.Errorf("%s: %v, want %s", x.name, err, x.wrong)
			}
			continue
		}
		if err != nil || (p.Memory == nil) != (x.memory == "") || p.Memory != nil && p.Memory.String() != x.memory ||
			(p.Max == nil) != (x.max == 0) || p.Max != nil && *p.Max != x.max ||
			(p.VLAN == nil) != (x.vlan == 0) || p.VLAN != nil && *p.VLAN != x.vlan {
			t.Errorf("%s: %+v, %v", x.name, p, err)
		}
	}
}

func list(l ...resourceapi.DeviceAllocationConfiguration) []resourceapi.DeviceAllocationConfiguration {
	return l
}

func FuzzParameters(f *testing.F) {
	f.Add([]byte(`{"apiVersion": "rdma.softvpi.io/v1", "kind": "Parameters", "memory": "16Mi", "max": 1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := decode(raw)
		if err == nil && p.Memory != nil && (p.Memory.Value() < leastMemory || p.Memory.Value() > mostMemory) {
			t.Errorf("%s is taken", raw)
		}
	})
}

// Names of devices are DNS labels, each another one.
func TestLabels(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"vf-red", "vf-Red", "vf-r.ed", "vf-r_ed", "vf-" + strings.Repeat("n", 31),
		"vf-" + strings.Repeat("N", 61), "vf-\x00é"} {
		l := label(name)
		if !isLabel(l) || seen[l] != "" || name == "vf-red" && l != name {
			t.Errorf("%q is %q, as %q", name, l, seen[l])
		}
		seen[l] = name
	}
}
