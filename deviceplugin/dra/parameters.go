package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Parameters are the opaque configuration of a device by a class or a claim. What is absent stays as the driver's configuration has it.
type Parameters struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Of a shared device: what its programs may make the driver hold.
	Memory      *resource.Quantity `json:"memory,omitempty"`
	Descriptors *int64             `json:"descriptors,omitempty"`
	// Of a virtual function: most that it sends, and what it has before others have more, in Mbit/s.
	Max *float64 `json:"max,omitempty"`
	Min *float64 `json:"min,omitempty"`
	// Its VLAN, and whether its programs may send raw packets.
	VLAN  *int64 `json:"vlan,omitempty"`
	Trust *bool  `json:"trust,omitempty"`
	// Preload is whether programs get the library that UCX needs, which images with another C library than glibc cannot load.
	Preload *bool `json:"preload,omitempty"`
}

const (
	parametersVersion = DriverName + "/v1"
	parametersKind    = "Parameters"
)

const (
	fromClass = resourceapi.AllocationConfigSourceClass
	fromClaim = resourceapi.AllocationConfigSourceClaim
)

// The least and the most of what the driver takes.
const (
	leastMemory, mostMemory           = 8 << 20, 1 << 50
	leastDescriptors, mostDescriptors = 4, 1 << 20
	mostRate                          = 1_000_000
	mostVLAN                          = 4094
)

// decode reads parameters, of which every field must be known and its value allowed.
func decode(raw []byte) (p Parameters, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("parameters: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return p, errors.New("parameters: more than one object")
	}
	wrong := func(field string, value any, allowed string) error {
		return fmt.Errorf("parameters: %s is %v; allowed: %s", field, value, allowed)
	}
	rate := func(v *float64) bool { return v == nil || *v == 0 || *v >= 1 && *v <= mostRate }
	switch {
	case p.APIVersion != parametersVersion:
		return p, wrong("apiVersion", fmt.Sprintf("%q", p.APIVersion), parametersVersion)
	case p.Kind != parametersKind:
		return p, wrong("kind", fmt.Sprintf("%q", p.Kind), parametersKind)
	case p.Memory != nil && (p.Memory.Value() < leastMemory || p.Memory.Value() > mostMemory):
		return p, wrong("memory", p.Memory.String(), "8Mi to 1Pi")
	case p.Descriptors != nil && (*p.Descriptors < leastDescriptors || *p.Descriptors > mostDescriptors):
		return p, wrong("descriptors", *p.Descriptors, fmt.Sprintf("%d to %d", leastDescriptors, mostDescriptors))
	case !rate(p.Max):
		return p, wrong("max", *p.Max, fmt.Sprintf("0 (no limit), 1 to %d Mbit/s", mostRate))
	case !rate(p.Min):
		return p, wrong("min", *p.Min, fmt.Sprintf("0 (none), 1 to %d Mbit/s", mostRate))
	case p.VLAN != nil && (*p.VLAN < 0 || *p.VLAN > mostVLAN):
		return p, wrong("vlan", *p.VLAN, fmt.Sprintf("0 (none) to %d", mostVLAN))
	}
	return p, nil
}

// fieldsFor returns the names of fields that are set, of those for devices of one type.
func (p *Parameters) fieldsFor(kind string) (names []string) {
	fields := map[string]bool{"memory": p.Memory != nil, "descriptors": p.Descriptors != nil}
	if kind == typeVF {
		fields = map[string]bool{"max": p.Max != nil, "min": p.Min != nil, "vlan": p.VLAN != nil, "trust": p.Trust != nil}
	}
	for name, set := range fields {
		if set {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// configure returns the parameters for the device of a request: those of the class, and within them those of the claim. A class is the
// administrator's and a claim any user's: a claim may ask for less, and not for what tells tenants apart.
func configure(list []resourceapi.DeviceAllocationConfiguration, request string, d *device) (out Parameters, err error) {
	kind, other := typeShared, typeVF
	if d.function != "" {
		kind, other = other, kind
	}
	most := Parameters{}
	if d.function == "" && d.memory > 0 {
		most.Memory = resource.NewQuantity(int64(d.memory), resource.BinarySI)
	}
	if n := int64(d.descriptors); d.function == "" && n > 0 {
		most.Descriptors = &n
	}
	if n := d.has.Max; n > 0 {
		most.Max = &n
	}
	for _, source := range []resourceapi.AllocationConfigSource{fromClass, fromClaim} {
		for i := range list {
			c := &list[i]
			if c.Source != source || c.Opaque == nil || c.Opaque.Driver != DriverName || !concerns(c.Requests, request) {
				continue
			}
			p, err := decode(c.Opaque.Parameters.Raw)
			if err != nil {
				return out, err
			}
			if f := p.fieldsFor(other); len(f) > 0 {
				return out, fmt.Errorf("parameters: %s: not of a device of type %s", strings.Join(f, ", "), kind)
			}
			if source == fromClaim {
				if err := within(&p, &most); err != nil {
					return out, err
				}
			}
			out.take(&p)
		}
		most.take(&out)
	}
	if out.Max != nil && out.Min != nil && *out.Max > 0 && *out.Min > *out.Max {
		return out, fmt.Errorf("parameters: min is %g; allowed: at most max, %g", *out.Min, *out.Max)
	}
	return out, nil
}

// within checks what a claim asks for against what it may have.
func within(p, most *Parameters) error {
	switch {
	case p.VLAN != nil || p.Trust != nil || p.Min != nil:
		return errors.New("parameters: min, vlan and trust: allowed in a DeviceClass, and not in a claim")
	case p.Memory != nil && most.Memory != nil && p.Memory.Cmp(*most.Memory) > 0:
		return fmt.Errorf("parameters: memory is %s; allowed in a claim: at most %s", p.Memory, most.Memory)
	case p.Descriptors != nil && most.Descriptors != nil && *p.Descriptors > *most.Descriptors:
		return fmt.Errorf("parameters: descriptors is %d; allowed in a claim: at most %d", *p.Descriptors, *most.Descriptors)
	case p.Max != nil && most.Max != nil && *most.Max > 0 && (*p.Max == 0 || *p.Max > *most.Max):
		return fmt.Errorf("parameters: max is %g; allowed in a claim: at most %g", *p.Max, *most.Max)
	}
	return nil
}

// take takes over what is set in q.
func (p *Parameters) take(q *Parameters) {
	p.Memory, p.Descriptors = or(q.Memory, p.Memory), or(q.Descriptors, p.Descriptors)
	p.Max, p.Min = or(q.Max, p.Max), or(q.Min, p.Min)
	p.VLAN, p.Trust, p.Preload = or(q.VLAN, p.VLAN), or(q.Trust, p.Trust), or(q.Preload, p.Preload)
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// concerns reports whether a configuration is for a request: for all if it names none, and for the alternatives of one that it names.
func concerns(requests []string, request string) bool {
	whole, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, whole)
}
