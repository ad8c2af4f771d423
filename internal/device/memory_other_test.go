//go:build !unix

package device

import "testing"

func pages(t testing.TB, n int) []byte { return make([]byte, n) }
