//go:build !amd64

package ib

const foldLeast = 1 << 62 // no packet is that long

func vcrcLong(c uint16, p []byte) uint16 { return vcrcSlices(c, p) }
