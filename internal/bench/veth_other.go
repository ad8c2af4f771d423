//go:build !linux

package bench

import (
	"errors"
	"os/exec"
)

func vethPath(int) (*path, func() error, error) {
	return nil, nil, errors.New("network namespaces are Linux only")
}

// veth is for Linux only.
type veth struct{}

func (*veth) adopt(int) error { return errors.ErrUnsupported }
func (*veth) enclose() error  { return errors.ErrUnsupported }

func hostPath() (*path, *veth, func() error, error) {
	return nil, nil, nil, errors.New("network namespaces are Linux only")
}

func wiresPath(int) (*path, func() ([2]string, error), func() error, error) {
	return nil, nil, nil, errors.New("network namespaces are Linux only")
}

func hostOf(string, ...string) (func(*exec.Cmd) error, func() error, error) {
	return nil, nil, errors.New("network namespaces are Linux only")
}
