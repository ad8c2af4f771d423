package testbed

import (
	"errors"
	"testing"
)

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the result of a call that must succeed: Must(call())(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// WantErr ends the test if err is not want.
func WantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}
