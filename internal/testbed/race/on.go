//go:build race

package race

// Detector is true under the race detector.
const Detector = true
