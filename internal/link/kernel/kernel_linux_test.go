package kernel

import "testing"

// TestKernelVersion: the major and minor version are read from the release strings that kernels use.
func TestKernelVersion(t *testing.T) {
	for release, want := range map[string][2]int{
		"6.5.0": {6, 5}, "6.18.44-fc-v769": {6, 18}, "5.15.0-91-generic": {5, 15}, "7.0-rc1": {7, 0}, "": {}, "x": {}, "6": {6, 0},
		"99999.1": {9999, 0},
	} {
		if major, minor := version([]byte(release)); major != want[0] || minor != want[1] {
			t.Errorf("%q is %d.%d, want %v", release, major, minor, want)
		}
	}
}
