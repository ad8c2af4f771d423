package powershell

import (
	"errors"
	"strings"
	"testing"
)

// TestSwitch: the bodies of all conditions that hold run, for each element (about_Switch).
func TestSwitch(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"a number", "switch (3) { 1 { 'one' } 3 { 'three' } 4 { 'four' } 3 { 'again' } }", "three\nagain\n"},
		{"break ends it", "switch (3) { 3 { 'three'; break } 3 { 'again' } }; 'on'", "three\non\n"},
		{"default", "switch (9) { 1 { 'one' } default { \"no $_\" } }", "no 9\n"},
		{"default anywhere", "switch (1) { default { 'none' } 1 { 'one' } }", "one\n"},
		{"default in quotes is text", "switch ('default') { 'default' { 'text' } default { 'none' } }", "text\n"},
		{"a list", "switch (4, 2) { 1 { 'one' } 2 { 'two' } 4 { 'four' } }", "four\ntwo\n"},
		{"continue goes to the next element", "switch (1, 2) { 1 { 'one'; continue } { $_ -lt 5 } { \"small $_\" } }", "one\nsmall 2\n"},
		{"break ends it for all elements", "switch (1, 2, 3) { 2 { break } default { $_ } }", "1\n"},
		{"words", "switch ('Up') {\n  up { 'runs' }\n  down { 'rests' }\n}", "runs\n"},
		{"any letter case", "switch ('UP') { 'up' { 'a' } }", "a\n"},
		{"-CaseSensitive", "switch -CaseSensitive ('UP') { 'up' { 'a' } 'UP' { 'b' } }", "b\n"},
		{"-Wildcard", "switch -Wildcard ('Ethernet 4') { 'Eth*' { 'a' } '*5' { 'b' } '*?4' { 'c' } }", "a\nc\n"},
		{"-Regex sets $matches", "switch -Regex ('mlx5_3') { '^mlx(\\d)_(\\d)$' { $matches[2] } 'z' { 'no' } }", "3\n"},
		{"a short parameter", "switch -reg -c ('ab') { '^A' { 'no' } '^a' { 'yes' } }", "yes\n"},
		{"the last of ways that exclude each other", "switch -Regex -Exact ('ab') { 'a' { 'no' } 'ab' { 'yes' } }", "yes\n"},
		{"-Wildcard is ignored for a number", "switch -Wildcard (10) { 10 { 'ten' } '1*' { 'begins' } }", "ten\nbegins\n"},
		{"blocks", "switch (7) { { $_ -gt 5 } { 'large' } { $_ % 2 } { 'odd' } { $_ -gt 9 } { 'huge' } }", "large\nodd\n"},
		{"expressions and variables", "$a = 2; switch (4) { $a { 'no' } ($a * 2) { 'yes' } }", "yes\n"},
		{"a value that is text", "switch ('4') { 4 { 'four' } }", "four\n"},
		{"nothing is a value", "switch ($null) { $null { 'nothing' } default { 'other' } }", "nothing\n"},
		{"an empty list has no elements", "switch (@()) { default { 'x' } }", ""},
		{"a command that returns nothing", "switch (Get-Thing | Out-Null) { default { 'x' } }", ""},
		{"the elements of a command", "switch ((Get-Thing).Name) { 'two' { 'found' } }", "found\n"},
		{"$_ is what it was behind it", "5 | % { switch (1) { 1 { $_ } }; $_ }", "1\n5\n"},
		{"as a value", "$a = switch (2) { 2 { 'two' } }; \"is $a\"", "is two\n"},
		{"break in a switch in a loop leaves the switch", "foreach ($i in 1, 2) { switch ($i) { 1 { break } }; $i }", "1\n2\n"},
		{"a label leaves the loop", ":l foreach ($i in 1, 2) { switch ($i) { 2 { break l } }; $i }; 'on'", "1\non\n"},
		{"a label of the switch", ":s switch (1) { 1 { foreach ($i in 1, 2) { $i; break s } } 1 { 'no' } }", "1\n"},
		{"return in the block of a command leaves that", "1, 2 | % { if ($_ -eq 1) { return 'one' }; $_ }; & { return 3; 4 }; 'on'", "one\n2\n3\non\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if err != nil || out != c.want {
				t.Errorf("%s\nprints %q, want %q\nsays %s\n%v", c.script, out, c.want, said, err)
			}
		})
	}
}

// TestSwitchSyntax: what is wrong about a switch is said with its place and what is allowed.
func TestSwitchSyntax(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"switch -File x { }", "line 1, column 8: switch -File is not in the part"},
		{"switch -Loud (1) { }", "switch has no parameter -loud; allowed: -Exact, -Wildcard, -Regex, -CaseSensitive"},
		{"switch - (1) { }", "switch has no parameter -; allowed"},
		{"switch (1) { default { } default { } }", "line 1, column 26: switch has default twice"},
		{"switch (1) { 1 }", "a condition of switch wants '{' here, not '}'"},
		{"switch (1) { 1 { }", "switch wants a condition and a block here, not the end of the script"},
		{"switch (1) { }; 'on'", "line 1, column 14: switch wants a condition and a block here, not '}'"},
		{"switch 1 { }", "switch wants '(' here"},
		{"switch (1) { ) { } }", "switch wants a condition and a block here, not ')'"},
	} {
		_, err := Parse(c.script)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.script, err, c.want)
		}
	}
	if _, said, err := play(t, &desk{}, "switch -Regex ('a') { '(' { } }", Limits{}); err == nil || !strings.Contains(said+err.Error(), "no regular expression") {
		t.Errorf("a pattern that is none: %q %v", said, err)
	}
}
