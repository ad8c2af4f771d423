//go:build !linux

package cable

var openSystem opener = openPortable
