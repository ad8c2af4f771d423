package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTooWide(t *testing.T) {
	long, wide := strings.Repeat("x", 150), strings.Repeat("≥", 120)
	for _, c := range []struct {
		name, source string
		want         []int
	}{
		{"a comment", "package a\n\n// " + long + "\n", []int{3}},
		{"code beside a string", "package a\n\nvar " + long + " = \"" + long + "\"\n", []int{3}},
		{"a string", "package a\n\nvar text = \"" + long + "\"\n", nil},
		{"a struct tag", "package a\n\ntype t struct {\n\tA int `help:\"" + long + "\"`\n}\n", nil},
		{"a string of several lines", "package a\n\nvar text = `\n" + long + "\n`\n", nil},
		{"characters, not bytes", "package a\n\n// " + wide + "\n", nil},
		{"tabs are four columns", "package a\n\nfunc f() {\n" + strings.Repeat("\t", 6) + "// " + wide + "\n}\n", []int{4}},
	} {
		if got := tooWide([]byte(c.source)); !slices.Equal(got, c.want) {
			t.Errorf("%s: lines %v, want %v", c.name, got, c.want)
		}
	}
}
