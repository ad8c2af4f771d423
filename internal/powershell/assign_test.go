package powershell

import (
	"errors"
	"strings"
	"testing"
)

// TestAssignment: what is set, to what, and what an assignment returns (about_Assignment_Operators).
func TestAssignment(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"two at once", "$a = $b = 5; $a + $b", "10\n"},
		{"in parentheses it has a value", "($a = 5); if ($b = 0) { 'no' }; $a", "5\n5\n"},
		{"in a condition", "while (($n += 1) -lt 3) { $n }", "1\n2\n"},
		{"in $( ) it has none", "\"[$($a = 5)]$a [$($a++)]$a\"", "[]5 []6\n"},
		{"to nothing", "$null = Get-Thing; 'on'", "on\n"},
		{"several", "$a, $b = 1, 2; $b, $a = $a, $b; \"$a $b\"", "2 1\n"},
		{"several and a rest", "$a, $b, $c = 1, 2, 3, 4; \"$a $b $c\"; $d, $e = 5; $null -eq $e", "1 2 3 4\nTrue\n"},
		{"with a type", "[int]$a = '5'; $a + 1; $a = '7'; $a + 1; [string[]]$s = 1, 2; $s[0] + 'x'", "6\n8\n1x\n"},
		{"elements and properties", "$h = @{n = 1}; $h.n++; $h['n'] += 5; $l = 1, 2; $l[0]--; --$l[1]; $h.n; $l", "7\n0\n1\n"},
		{"counting before and behind", "$i = 5; $a = $i++; $b = ++$i; \"$a $b $i\"; ++$i; $i", "5 7 7\n8\n"},
		{"remainder", "$a = 7; $a %= 4; $a *= 3; $a -= 1; $a /= 2; $a", "4\n"},
		{"scopes of a variable", "$script:a = 1; $local:a += 1; \"${script:a} $a $global:a|\"", "2 2 |\n"},
		{"a scope around it", "$global:a = 1; \"$a $script:a|\"", "1 |\n"},
		{"$PSItem is $_", "1, 2 | % { $PSItem * 2 }", "2\n4\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if err != nil || out != c.want {
				t.Errorf("%s\nprints %q, want %q\nsays %s\n%v", c.script, out, c.want, said, err)
			}
		})
	}
}

// TestAssignmentErrors: what cannot be set is refused.
func TestAssignmentErrors(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"5, $a = 1", "only a variable, a property or an element can be set by ="},
		{"$a, $b += 1", "can be set by +="},
		{"[int] = 1", "an expression cannot begin with '='"},
		{"++$a.f()", "can be counted by ++"},
		{"$using:a", "$using:a names no variable that there is; allowed before the colon: env, variable, global, script, local, private"},
		{"$true = 1", "$true cannot be set"},
		{"$env:PATH = 1", "$env:path cannot be set"},
		{"[int]$a = 5; $a = 'x'", `"x" is no number`},
	} {
		_, said, err := play(t, &desk{}, c.script, Limits{})
		if err == nil || !strings.Contains(said+err.Error(), c.want) {
			t.Errorf("%q: %q %v, want %q", c.script, said, err, c.want)
		}
	}
	var syntax *SyntaxError
	if _, err := Parse("$foo:bar"); !errors.As(err, &syntax) {
		t.Errorf("a drive that there is not: %v", err)
	}
}
