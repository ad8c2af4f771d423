//go:build race

package device

// raceDetector is true where the test runs under the race detector, which allocates memory itself.
const raceDetector = true
