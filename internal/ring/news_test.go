package ring

import (
	"errors"
	"testing"
)

// TestNews: the driver sees how much of what it sent was taken, and both sides use the same words.
func TestNews(t *testing.T) {
	b := mem(t, DoorbellGeometry(64))
	driver, err := OpenNews(b)
	if err != nil {
		t.Fatal(err)
	}
	program, err := OpenNews(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(5) {
		if driver.Waiting() != i {
			t.Fatalf("%d frames wait, want %d", driver.Waiting(), i)
		}
		driver.Tell()
	}
	program.Take()
	if driver.Waiting() != 4 {
		t.Fatalf("%d frames wait, want 4", driver.Waiting())
	}
	for range 5 { // nonsense: more than there were
		program.Take()
	}
	if driver.Waiting() < 1<<31 {
		t.Error("a program that counts too many frames seems to have taken everything")
	}
	if _, err := OpenNews(b[:64]); !errors.Is(err, errLayout) {
		t.Errorf("too little memory: error %v, want %v", err, errLayout)
	}
}
