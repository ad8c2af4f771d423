//go:build !linux

package bench

import "errors"

func vethPath(int) (*path, func() error, error) {
	return nil, nil, errors.New("network namespaces are Linux only")
}
