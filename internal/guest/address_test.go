package guest

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]Address{
		"unix:/run/red":  {Kind: Unix, Path: "/run/red"},
		"unix:red//a":    {Kind: Unix, Path: "red/a"},
		"vsock:3:1000":   {Kind: Vsock, CID: 3, Port: 1000},
		"vsock:1:1000":   {Kind: Vsock, CID: 1, Port: 1000},
		"vsock:2:1000":   {}, // the host
		"vsock:0:1000":   {}, // the hypervisor
		"vsock:1000":     {},
		"vsock:-1:9":     {},
		"vsock:3:x":      {},
		"device:/dev/v":  {},
		"unix:":          {},
		"unix:a\x00b":    {},
		"":               {},
		"tcp:127.0.0.1":  {},
		"vsock:3:1000:1": {},
	} {
		if got, err := ParseListen(s); got != want || (err == nil) != (want != Address{}) {
			t.Errorf("listen %q: %v, %v", s, got, err)
		} else if err != nil && !strings.Contains(err.Error(), AllowedListen) {
			t.Errorf("listen %q: %v", s, err)
		}
	}
	for s, want := range map[string]Address{
		"unix:/run/red": {Kind: Unix, Path: "/run/red"}, "vsock:1000": {Kind: Vsock, CID: 2, Port: 1000},
		"device:/dev/virtio-ports/x": {Kind: Device, Path: "/dev/virtio-ports/x"},
		"vsock:3:1000":               {}, "vsock:4294967295": {}, "device:": {}, "/dev/x": {},
	} {
		got, err := ParseHost(s)
		if got != want || (err == nil) != (want != Address{}) {
			t.Errorf("host %q: %v, %v", s, got, err)
		} else if err == nil && got.String() != s {
			t.Errorf("host %q is said to be %q", s, got)
		}
	}
}
