package cmdlets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

func (f *fake) CreateFunction(_ context.Context, q api.FunctionRequest) (api.FunctionStatus, error) {
	for i := range f.adapters {
		a := &f.adapters[i]
		if a.Name != q.Adapter {
			continue
		}
		v := api.FunctionStatus{Name: q.Name, Adapter: a.Name, MAC: fmt.Sprintf("02:01:00:00:00:%02x", len(a.Functions)), Link: "auto", Up: true}
		f.record("%s: virtual function %s", a.Name, strings.Join(append([]string{q.Name}, q.Settings...), " "))
		settle(&v, q.Settings)
		a.Functions = append(a.Functions, v)
		return v, nil
	}
	return api.FunctionStatus{}, errors.New("no adapter " + q.Adapter)
}

// settle changes a virtual function by its settings, those of them that tests look at.
func settle(v *api.FunctionStatus, settings []string) {
	for _, s := range settings {
		switch name, value, _ := strings.Cut(s, "="); name {
		case "mac":
			v.MAC = value
		case "vlan":
			_, _ = fmt.Sscan(value, &v.VLAN)
		case "vsid":
			_, _ = fmt.Sscan(value, &v.VSID)
		case "link":
			v.Link = value
		case "rdma":
			v.NoRDMA = value == "off"
		case "max":
			_, _ = fmt.Sscan(value, &v.Max)
		}
	}
}

func (f *fake) SetFunction(_ context.Context, q api.FunctionRequest) error {
	for i := range f.adapters {
		for n := range f.adapters[i].Functions {
			if v := &f.adapters[i].Functions[n]; v.Name == q.Name {
				f.record("virtual function %s: %s", q.Name, strings.Join(q.Settings, " "))
				settle(v, q.Settings)
				return nil
			}
		}
	}
	return errors.New("no function " + q.Name)
}

func (f *fake) RemoveFunction(_ context.Context, name string) error {
	f.record("no virtual function %s", name)
	for i := range f.adapters {
		a := &f.adapters[i]
		a.Functions = slices.DeleteFunc(a.Functions, func(v api.FunctionStatus) bool { return v.Name == name })
	}
	return nil
}
