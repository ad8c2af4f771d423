package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/softvpi/softvpi/internal/api"
)

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (p *plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult,
	error) {
	out := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		have, err := p.prepare(ctx, c)
		if err != nil {
			p.o.Log.Warn("a claim is not prepared", "namespace", c.Namespace, "claim", c.Name, "cause", err)
			out[c.UID] = kubeletplugin.PrepareResult{Err: err}
			continue
		}
		p.o.Log.Info("prepared", "namespace", c.Namespace, "claim", c.Name, "devices", len(have.Devices))
		out[c.UID] = have.result()
	}
	return out, nil
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (p *plugin) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	out := map[types.UID]error{}
	for _, c := range claims {
		if out[c.UID] = p.unprepare(ctx, c.UID); out[c.UID] != nil {
			p.o.Log.Warn("a claim is still prepared", "namespace", c.Namespace, "claim", c.Name, "cause", out[c.UID])
		}
	}
	return out, nil
}

// prepare gives a claim its devices. It may do so again.
func (p *plugin) prepare(ctx context.Context, c *resourceapi.ResourceClaim) (have claim, err error) {
	p.look(ctx)
	if err := p.meet(ctx, c); err != nil {
		return have, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.claims[c.UID]; ok {
		return have, errors.Join(p.apply(ctx, &have), p.writeSpec(c.UID, &have))
	}
	if have, err = p.allocated(c); err != nil {
		return have, err
	}
	if err := p.keep(c.UID, &have); err != nil { // first, so that whatever was done is undone, also by the next process
		return have, err
	}
	if err := errors.Join(p.apply(ctx, &have), p.writeSpec(c.UID, &have)); err != nil {
		return have, errors.Join(err, p.undo(ctx, c.UID))
	}
	return have, nil
}

// meet refuses a claim that meets another in a container. One that is prepared stays so where that cannot be looked at.
func (p *plugin) meet(ctx context.Context, c *resourceapi.ResourceClaim) error {
	look := &containersOf{api: p.kube, claim: c}
	again := p.prepared(c.UID)
	if again {
		look.prepared = p.prepared
	}
	err := look.check(ctx)
	var e *crowded
	if err != nil && again && !errors.As(err, &e) {
		p.o.Log.Warn("containers of a prepared claim are not looked at", "namespace", c.Namespace, "claim", c.Name, "cause", err)
		return nil
	}
	return err
}

// prepared reports whether a claim is prepared, by this process or one before it.
func (p *plugin) prepared(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.claims[uid]
	return ok
}

// allocated returns what a claim is to have, as it was allocated and configured.
func (p *plugin) allocated(c *resourceapi.ResourceClaim) (claim, error) {
	have := claim{Namespace: c.Namespace, Name: c.Name}
	if c.Status.Allocation == nil {
		return have, errors.New("the claim is not allocated")
	}
	var requests []string
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != DriverName {
			continue
		}
		d := p.find(r.Device)
		switch {
		case r.Pool != p.o.node || d == nil:
			return have, fmt.Errorf("device %s of pool %s: the driver has none of that name", r.Device, r.Pool)
		case d.why != "":
			return have, fmt.Errorf("device %s: %s", r.Device, d.why)
		case slices.Contains(requests, r.Request):
			return have, fmt.Errorf("request %s has more than one device; allowed: 1, since a container has one socket", r.Request)
		}
		if uid, other := p.holder(r.Device); uid != "" {
			return have, fmt.Errorf("device %s: claim %s/%s (%s) has it", r.Device, other.Namespace, other.Name, uid)
		}
		requests = append(requests, r.Request)
		q, err := configure(c.Status.Allocation.Devices.Config, r.Request, d)
		if err != nil {
			return have, err
		}
		have.Devices = append(have.Devices, given(c.UID, &r, d, &q))
	}
	return have, nil
}

// given returns what a request has of a device.
func given(uid types.UID, r *resourceapi.DeviceRequestAllocationResult, d *device, q *Parameters) held {
	h := held{Request: r.Request, Pool: r.Pool, Device: d.name, Name: d.cdi, ID: claimKind + "=" + string(uid) + "-" + d.name,
		Number: d.number, Function: d.function, BaseMemory: d.memory, BaseDescriptors: d.descriptors,
		Preload: q.Preload == nil || *q.Preload}
	if d.function == "" {
		if q.Memory != nil {
			n := uint64(q.Memory.Value())
			h.Memory = &n
		}
		if q.Descriptors != nil {
			n := uint32(*q.Descriptors)
			h.Descriptors = &n
		}
		return h
	}
	now := words(&d.has)
	set := func(name, value string) {
		h.Settings = append(h.Settings, name+"="+value)
		h.Before = append(h.Before, name+"="+now[name])
	}
	if q.Max != nil {
		set("max", number(*q.Max))
	}
	if q.Min != nil {
		set("min", number(*q.Min))
	}
	if q.VLAN != nil {
		set("vlan", strconv.FormatInt(*q.VLAN, 10))
	}
	if q.Trust != nil {
		set("trust", onOff(*q.Trust))
	}
	return h
}

// words are the settings of a function that parameters change, as the driver takes them.
func words(f *api.FunctionStatus) map[string]string {
	return map[string]string{"max": number(f.Max), "min": number(f.Min), "vlan": strconv.Itoa(int(f.VLAN)), "trust": onOff(f.Trust)}
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func onOff(v bool) string {
	if v {
		return "on"
	}
	return "off"
}

// apply has the driver treat the devices of a claim as its parameters say, as far as it does not yet.
func (p *plugin) apply(ctx context.Context, c *claim) error {
	for i := range c.Devices {
		h := &c.Devices[i]
		d := p.find(h.Device)
		if d == nil {
			return fmt.Errorf("device %s: the driver has none of that name", h.Device)
		}
		if err := p.api.change(ctx, h.change(d)); err != nil {
			return fmt.Errorf("device %s: %w", h.Device, err)
		}
	}
	return nil
}

// unprepare takes the devices of a claim back. One that is not prepared is no error.
func (p *plugin) unprepare(ctx context.Context, uid types.UID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.undo(ctx, uid)
}

func (p *plugin) undo(ctx context.Context, uid types.UID) error {
	if err := p.removeSpec(uid); err != nil {
		return err
	}
	c, ok := p.claims[uid]
	if !ok {
		return nil
	}
	var errs []error
	for i := range c.Devices {
		h := &c.Devices[i]
		err := p.api.change(ctx, h.back())
		if h.Function == "" && errors.Is(err, api.ErrNotRunning) {
			err = nil // quotas end with the driver
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return p.keep(uid, nil)
}

// change returns what is to be changed so that a device is as its claim has it; d is what the driver has.
func (h *held) change(d *device) change {
	if h.Function == "" {
		c := change{container: h.Number}
		if h.Memory != nil && *h.Memory != d.nowMemory {
			c.memory = h.Memory
		}
		if h.Descriptors != nil && uint64(*h.Descriptors) != d.nowDescriptors {
			c.descriptors = h.Descriptors
		}
		return c
	}
	now := words(&d.has)
	for name, value := range now {
		if i := slices.IndexFunc(h.Settings, func(s string) bool { return s[:min(len(name)+1, len(s))] == name+"=" }); i >= 0 &&
			h.Settings[i] != name+"="+value {
			return change{function: h.Function, settings: h.Settings}
		}
	}
	return change{}
}

// back returns what is to be changed so that a device is as it was before its claim.
func (h *held) back() change {
	c := change{container: h.Number, function: h.Function, settings: h.Before}
	if h.Memory != nil {
		c.memory = new(uint64)
	}
	if h.Descriptors != nil {
		c.descriptors = new(uint32)
	}
	return c
}
