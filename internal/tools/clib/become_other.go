//go:build !linux

package clib

func become(string, []string, []string) error { return errPlatform }

func lookPath(name string) (string, error) { return name, nil }
