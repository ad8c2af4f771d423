package server

import (
	"testing"
)

// TestCredits: reserved credit can be reserved by nobody else until it is settled, and counts as granted meanwhile.
func TestCredits(t *testing.T) {
	c := newCredits()
	if n := c.grant(10); n != 10 {
		t.Errorf("%d granted, want 10", n)
	}
	if n := c.reserve(7); n != 7 {
		t.Errorf("%d reserved of 10, want 7", n)
	}
	if n := c.reserve(7); n != 3 {
		t.Errorf("%d reserved of the remaining 3, want 3", n)
	}
	if n := c.grant(5); n != 15 {
		t.Errorf("%d granted with none used, want 15", n)
	}
	c.settle(7, 2)
	c.settle(3, 3)
	if n := c.reserve(100); n != 10 {
		t.Errorf("%d reserved after 5 of 15 were used, want 10", n)
	}
	if n := c.reserve(1); n != 0 {
		t.Errorf("%d reserved of none, want 0", n)
	}
}
