// Package retry counts how often tests run a program of others again because of a fault of that program which is known.
// Nothing of SoftVPI is tried twice: what failed once has failed.
package retry

import (
	"os"
	"testing"
)

// Variable names the environment variable with the file to which a line is added for each retry; make test-system and
// .ci/run print how many there were of each kind.
const Variable = "SOFTVPI_TEST_RETRIES"

// Count notes that a program of others is run again by a test, and why: what in that program makes it necessary.
func Count(t testing.TB, program, why string) {
	t.Helper()
	line := "retry: " + program + ": " + why
	t.Log(line)
	name := os.Getenv(Variable)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644) // O_APPEND: tests of several processes add
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(line + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		t.Fatal(err)
	}
}
