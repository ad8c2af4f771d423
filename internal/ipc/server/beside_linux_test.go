package server

import "testing"

// TestBeside: objects are shared by programs that see the same functions: one virtual function, or all that are none.
func TestBeside(t *testing.T) {
	of := func(index ...uint32) *session {
		n := new(session)
		if len(index) > 0 {
			n.function = &index[0]
		}
		return n
	}
	for _, c := range []struct {
		a, b *session
		want bool
	}{{of(), of(), true}, {of(3), of(3), true}, {of(3), of(4), false}, {of(), of(0), false}, {of(0), of(), false}} {
		if got := c.a.beside(c.b); got != c.want {
			t.Errorf("%v beside %v: %v", c.a.function, c.b.function, got)
		}
	}
}
