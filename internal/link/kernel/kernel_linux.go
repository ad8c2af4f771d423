// Package kernel tells how new the kernel is, because links use features of certain releases.
package kernel

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// AtLeast reports whether the kernel is of this release or a later one. If the release is unknown it
// reports false.
func AtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	m, n := version(u.Release[:])
	return m > major || m == major && n >= minor
}

// version returns the first two numbers of a kernel's release; 0 if there are none.
func version(release []byte) (major, minor int) {
	number := func() (n int) {
		for len(release) > 0 && release[0] >= '0' && release[0] <= '9' && n < 1000 {
			n = 10*n + int(release[0]-'0')
			release = release[1:]
		}
		return n
	}
	major = number()
	if rest, ok := bytes.CutPrefix(release, []byte(".")); ok {
		release = rest
		minor = number()
	}
	return major, minor
}
