//go:build unix && !linux

package verbs

func preferHuge([]byte) {}
