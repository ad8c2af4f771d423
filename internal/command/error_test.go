package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// errors.Is finds the class of an error however deep it is wrapped, and compares details only if the target has one.
func TestErrorClasses(t *testing.T) {
	err := fmt.Errorf("create QP: %w", Errorf(Invalid, "depth %d: allowed: 1 to %d", 0, 16))
	for _, c := range []struct {
		target error
		want   bool
	}{
		{&Error{Code: Invalid}, true},
		{&Error{Code: Invalid, Detail: "depth 0: allowed: 1 to 16"}, true},
		{&Error{Code: Invalid, Detail: "depth 1: allowed: 1 to 16"}, false},
		{&Error{Code: Exhausted}, false},
		{context.Canceled, false},
	} {
		if got := errors.Is(err, c.target); got != c.want {
			t.Errorf("errors.Is(%q, %v) = %t, want %t", err, c.target, got, c.want)
		}
	}
	if got, want := err.Error(), "create QP: invalid value: depth 0: allowed: 1 to 16"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&Error{Code: Busy}).Error(); got != "object in use" {
		t.Errorf("without a detail: %q, want \"object in use\"", got)
	}
}

// Every code has words of its own, and an unknown code is named by its number.
func TestCodesHaveNames(t *testing.T) {
	seen := map[string]Code{}
	for c := Invalid; c <= Access; c++ {
		name := c.String()
		if other, twice := seen[name]; twice || strings.HasPrefix(name, "code ") {
			t.Errorf("code %d is %q, which is no name of its own (code %d)", c, name, other)
		}
		seen[name] = c
	}
	if got := (Access + 1).String(); got != fmt.Sprintf("code %d", Access+1) {
		t.Errorf("an unknown code is %q", got)
	}
}

// Ended tells a context whose deadline has passed from one that was canceled.
func TestEnded(t *testing.T) {
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	if err := Ended(late); err.Code != TimedOut {
		t.Errorf("after a deadline: %v", err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Ended(canceled); err.Code != Canceled {
		t.Errorf("after cancel: %v", err)
	}
}

// Every memory path has a name, which status and captures of the protocol show.
func TestMemoryPathNames(t *testing.T) {
	for p, want := range map[MemoryPath]string{MemoryMapped: "mapped", MemoryProcessVM: "process_vm", MemoryCopier: "copier", 9: "path 9"} {
		if got := p.String(); got != want {
			t.Errorf("path %d is %q, want %q", uint32(p), got, want)
		}
	}
}
