package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// TestNewVirtualPort: what part_man add makes of its arguments (WinOF 5.50, 5.2).
func TestNewVirtualPort(t *testing.T) {
	taken := []string{"Ethernet 1", "Ethernet 2", "ethernet 3"}
	existing := []registry.VirtualPort{{Name: "ethernet 3", IName: "ipoib_2_1"}}
	for _, c := range []struct {
		q    api.VirtualPortRequest
		want registry.VirtualPort
		err  string // the field that is wrong
	}{
		{api.VirtualPortRequest{Connection: "Ethernet 2"}, registry.VirtualPort{Name: "Ethernet 4", IName: "ipoib_2_2"}, ""},
		{api.VirtualPortRequest{Connection: "Ethernet 2", IName: "iother", PKey: "F123"}, registry.VirtualPort{Name: "Ethernet 4",
			IName: "iother", PKey: 0xf123}, ""},
		{api.VirtualPortRequest{Connection: "left", PKey: "7123"}, registry.VirtualPort{Name: "Ethernet 4", IName: "ipoib_0_1",
			PKey: 0x7123}, ""},
		{api.VirtualPortRequest{Connection: "Ethernet 2", IName: "IPOIB_2_1"}, registry.VirtualPort{}, "iname"},
		{api.VirtualPortRequest{Connection: "Ethernet 2", IName: "i:x"}, registry.VirtualPort{}, "iname"},
		{api.VirtualPortRequest{Connection: "Ethernet 2", PKey: "8000"}, registry.VirtualPort{}, "pkey"},
	} {
		got, err := newVirtualPort(c.q, taken, existing, nil)
		var field *api.FieldError
		if c.err != "" {
			if !errors.As(err, &field) || field.Field != c.err {
				t.Errorf("%+v: error %v, want one of field %s", c.q, err, c.err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%+v: made %+v (%v), want %+v", c.q, got, err, c.want)
		}
	}
	for n := range 40 {
		v, err := newVirtualPort(api.VirtualPortRequest{Connection: "Ethernet 2"}, nil, existing, nil)
		if n < 31 && err != nil || n >= 31 && (err == nil || !strings.Contains(err.Error(), "at most 32 a port")) {
			t.Fatalf("virtual port %d: error %v, want one from the 32nd on", n+1, err)
		}
		v.IName = fmt.Sprint("i", n)
		if err == nil {
			existing = append(existing, v)
		}
	}
}
