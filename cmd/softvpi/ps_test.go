package main

import (
	"slices"
	"testing"
)

// TestScriptArguments: what stands behind a script's file is the script's, but for options with two hyphens before --.
func TestScriptArguments(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"status", "-v"}, []string{"status", "-v"}},
		{[]string{"ps", "a.ps1"}, []string{"ps", "a.ps1"}},
		{[]string{"ps", "a.ps1", "--whatif"}, []string{"ps", "a.ps1", "--whatif"}},
		{[]string{"ps", "a.ps1", "-Name", "x", "--json"}, []string{"ps", "a.ps1", "--json", "--", "-Name", "x"}},
		{[]string{"ps", "--json", "-", "-h", "y"}, []string{"ps", "--json", "-", "--", "-h", "y"}},
		{[]string{"ps", "--socket", "s", "a.ps1", "x"}, []string{"ps", "--socket", "s", "a.ps1", "--", "x"}},
		{[]string{"ps", "a.ps1", "x", "--socket", "s"}, []string{"ps", "a.ps1", "--socket", "s", "--", "x"}},
		{[]string{"ps", "a.ps1", "-c", "x"}, []string{"ps", "a.ps1", "--", "-c", "x"}},
		{[]string{"ps", "-c", "1 + 1"}, []string{"ps", "-c", "1 + 1"}},
		{[]string{"ps", "-h"}, []string{"ps", "-h"}},
		{[]string{"ps", "a.ps1", "--", "--json", "-x"}, []string{"ps", "a.ps1", "--", "--json", "-x"}},
		{[]string{"ps", "--socket"}, []string{"ps", "--socket"}},
	} {
		if got := scriptArguments(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%q becomes %q, want %q", c.args, got, c.want)
		}
	}
}
