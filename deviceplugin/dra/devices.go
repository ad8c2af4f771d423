package main

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/cdi"
)

// The values of the attribute type.
const (
	typeShared = "shared" // a socket for a container, with all adapters and a quota
	typeVF     = "vf"     // a virtual function
)

// device is what one claim at a time has.
type device struct {
	name     string // in the pool: a DNS label
	cdi      string // as package cdi names it
	number   int    // of a container's socket
	function string // name of a virtual function; empty: none
	why      string // it is not healthy; empty: it is
	// What the driver has now: the limits of a container, or the settings of a function.
	nowMemory, nowDescriptors uint64
	has                       api.FunctionStatus
	// memory and descriptors are the limits without a claim; 0: none.
	memory, descriptors uint64
	attributes          map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
}

// attributes gather those of a device.
type attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

func (a attributes) text(name resourceapi.QualifiedName, v string) {
	if v != "" && len(v) <= resourceapi.DeviceAttributeMaxValueLength {
		a[name] = resourceapi.DeviceAttribute{StringValue: &v}
	}
}

func (a attributes) number(name resourceapi.QualifiedName, v int64) {
	a[name] = resourceapi.DeviceAttribute{IntValue: &v}
}

func (a attributes) truth(name resourceapi.QualifiedName, v bool) {
	a[name] = resourceapi.DeviceAttribute{BoolValue: &v}
}

// port adds what is known of the port of an adapter.
func (a attributes) port(x *api.AdapterStatus) {
	a.text("adapter", x.Name)
	a.text("device", x.DeviceName)
	a.number("port", int64(max(x.Port, 1)))
	layer := "Ethernet"
	if x.InfiniBand != nil {
		layer = "InfiniBand"
	} else if x.Speed > 0 {
		a.number("speed", int64(x.Speed/1e6)) // Mbit/s, as sysfs has it of a network interface
	}
	a.text("linkLayer", layer)
}

// devicesOf returns what a driver with this status offers: sockets for containers by number, then virtual functions.
func devicesOf(st *api.Status, unready string) (list []device) {
	if st.Held != nil {
		for _, c := range st.Held.Containers {
			a := attributes{}
			a.text("type", typeShared)
			a.number("container", int64(c.Number))
			a.number("adapters", int64(len(st.Adapters)))
			if len(st.Adapters) == 1 {
				x := &st.Adapters[0]
				a.port(x)
				a.text("mac", x.MAC)
				a.text("guid", guid(x.GUID))
			}
			list = append(list, device{name: "shared-" + strconv.Itoa(c.Number), cdi: strconv.Itoa(c.Number), number: c.Number,
				nowMemory: c.MemoryLimit, nowDescriptors: c.DescriptorsLimit, memory: c.MemoryLimit, descriptors: c.DescriptorsLimit,
				why: unready, attributes: a})
		}
	}
	for i := range st.Adapters {
		x := &st.Adapters[i]
		for _, f := range x.Functions {
			if f.ContainerSocket == "" || f.NoRDMA {
				continue
			}
			a := attributes{}
			a.text("type", typeVF)
			a.port(x)
			a.text("function", f.Name)
			a.text("mac", f.MAC)
			a.text("guid", guid(f.GUID))
			a.text("address", f.Address)
			a.number("vlan", int64(f.VLAN))
			a.truth("trust", f.Trust)
			d := device{name: label("vf-" + f.Name), cdi: cdi.Function(f.Name), function: f.Name, why: unready, has: f, attributes: a}
			if !f.Up && d.why == "" {
				d.why = "the link of the virtual function is down"
			}
			list = append(list, d)
		}
	}
	return list
}

func guid(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

var isLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString

// label returns a DNS label for a name: itself, or what is left of it with a number that tells it from others.
func label(name string) string {
	if isLabel(name) {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return fmt.Sprintf("%.40s-%08x", plain, h.Sum32())
}

// slicesOf returns what is published of devices: those that are healthy, since others are to be given to nobody.
func slicesOf(pool string, list []device) resourceslice.DriverResources {
	var all []resourceapi.Device
	for i := range list {
		d := &list[i]
		if d.why != "" {
			continue
		}
		out := resourceapi.Device{Name: d.name, Attributes: d.attributes}
		if d.memory > 0 {
			out.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
				"memory": {Value: *resource.NewQuantity(int64(d.memory), resource.BinarySI)}}
		}
		all = append(all, out)
	}
	parts := []resourceslice.Slice{}
	for part := range slices.Chunk(all, resourceapi.ResourceSliceMaxDevices) {
		parts = append(parts, resourceslice.Slice{Devices: part})
	}
	if len(parts) == 0 {
		parts = append(parts, resourceslice.Slice{})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{pool: {Slices: parts}}}
}

// equal reports whether two lists are published alike, and are as healthy.
func equal(a, b []device) bool {
	return slices.EqualFunc(a, b, func(x, y device) bool {
		return x.name == y.name && x.why == y.why && x.memory == y.memory && reflect.DeepEqual(x.attributes, y.attributes)
	})
}
