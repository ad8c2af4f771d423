// Package race says whether a test runs under the race detector, for the few that count memory, which the detector takes itself, or do on
// purpose what it reports.
package race
