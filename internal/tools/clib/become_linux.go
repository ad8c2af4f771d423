package clib

import (
	"fmt"
	"os/exec"
	"syscall"
)

func become(path string, args, env []string) error {
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, args, env))
}

func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if e, ok := err.(*exec.Error); ok {
		if e.Err == exec.ErrNotFound {
			return "", fmt.Errorf("%s: %w", name, syscall.ENOENT)
		}
		return "", fmt.Errorf("%s: %w", name, e.Err)
	}
	return path, err
}
