//go:build linux && race

package reach

// move copies src to dst in order. The race detector does not know that rings in shared memory order the
// accesses of the copier and the program, and would report false races to a program that runs under it.
//
//go:norace
func move(dst, src []byte, _ bool) {
	for i := range src {
		dst[i] = src[i]
	}
}
