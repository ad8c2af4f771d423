package guest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Kind is a kind of stream between a machine and its host.
type Kind uint8

// The kinds.
const (
	Unix   Kind = iota + 1 // a unix socket, on the host also QEMU's end of a port of virtio-serial
	Vsock                  // vsock(7)
	Device                 // a character device in the machine: a port of virtio-serial
)

// Address is where one side of a stream is.
type Address struct {
	Kind Kind
	Path string
	// CID is the machine that a host's side is for, or the host (2) for a machine's.
	CID, Port uint32
}

// Host is the CID of the host (VMADDR_CID_HOST), and the least one that a machine has is behind it; Local stands for the machine itself
// (VMADDR_CID_LOCAL; vsock(7)). What connects to the host of a machine that has none comes from Local, if the kernel has vsock_loopback.
const (
	Local uint32 = 1
	Host  uint32 = 2
)

// AllowedListen and AllowedHost are what ParseListen and ParseHost take.
const (
	AllowedListen = "unix:PATH, vsock:CID:PORT with the CID of the machine, 3 or more, or 1, this one"
	AllowedHost   = "device:PATH, as /dev/virtio-ports/NAME, vsock:PORT, unix:PATH"
)

// ParseListen reads where the host's side is to wait for a machine.
func ParseListen(s string) (Address, error) {
	kind, at, _ := strings.Cut(s, ":")
	switch kind {
	case "unix":
		if a, ok := atPath(Unix, at); ok {
			return a, nil
		}
	case "vsock":
		cid, port, _ := strings.Cut(at, ":")
		c, wrong := strconv.ParseUint(cid, 10, 32)
		p, err := parsePort(port)
		if wrong == nil && err == nil && (c == uint64(Local) || c > uint64(Host) && c < 1<<32-1) {
			return Address{Kind: Vsock, CID: uint32(c), Port: p}, nil
		}
	}
	return Address{}, fmt.Errorf("listen is %q; allowed: %s", s, AllowedListen)
}

// ParseHost reads where a machine finds its host's side.
func ParseHost(s string) (Address, error) {
	kind, at, _ := strings.Cut(s, ":")
	switch kind {
	case "unix":
		if a, ok := atPath(Unix, at); ok {
			return a, nil
		}
	case "device":
		if a, ok := atPath(Device, at); ok {
			return a, nil
		}
	case "vsock":
		if p, err := parsePort(at); err == nil {
			return Address{Kind: Vsock, CID: Host, Port: p}, nil
		}
	}
	return Address{}, fmt.Errorf("host is %q; allowed: %s", s, AllowedHost)
}

func atPath(k Kind, path string) (Address, bool) {
	return Address{Kind: k, Path: filepath.Clean(path)}, path != "" && !strings.Contains(path, "\x00")
}

func parsePort(s string) (uint32, error) {
	p, err := strconv.ParseUint(s, 10, 32)
	if err == nil && p == 1<<32-1 {
		err = strconv.ErrRange // VMADDR_PORT_ANY
	}
	return uint32(p), err
}

// String returns the address as it is given.
func (a Address) String() string {
	switch {
	case a.Kind == Unix:
		return "unix:" + a.Path
	case a.Kind == Device:
		return "device:" + a.Path
	case a.CID == Host:
		return fmt.Sprintf("vsock:%d", a.Port)
	}
	return fmt.Sprintf("vsock:%d:%d", a.CID, a.Port)
}
