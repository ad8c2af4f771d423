//go:build !linux

package bed

import "testing"

const attaches = false

func (b *Bed) attach(t testing.TB) { t.Skip("attaching is Linux only for now") }
