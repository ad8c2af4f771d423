//go:build !linux

package clib

func become(string, []string, []string) error { return ErrPlatform }

func lookPath(name string) (string, error) { return name, nil }
