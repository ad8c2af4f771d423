package powershell

import (
	"errors"
	"strings"
	"testing"
)

// TestTrap: a trap takes the errors of its block and of what runs in it, wherever it stands there (about_Trap).
func TestTrap(t *testing.T) {
	for _, c := range []struct{ name, script, want, said string }{
		{"without a word the error is said, and the next statement runs", "trap { \"t $_\" }\n1 / 0\n'on'", "t Attempted to divide by zero.\non\n", "Attempted to divide by zero."},
		{"continue says nothing", "trap { 't'; continue }; 1 / 0; 'on'", "t\non\n", ""},
		{"it may stand behind", "1 / 0; 'on'; trap { 't'; continue }", "t\non\n", ""},
		{"throw goes on, too", "trap { \"t $_\"; continue }; throw 'x'; 'on'", "t x\non\n", ""},
		{"its type, before one of all", "trap { 'all'; continue }; trap [DivideByZeroException] { 'zero'; continue }; 1 / 0; throw 'x'", "zero\nall\n", ""},
		{"no trap takes it, but one around it", "function f { trap [TimeoutException] { 'no' }; 1 / 0; 'on' }\ntrap { 't'; continue }; f; 'on'",
			"t\non\n", ""},
		{"a loop in it ends", "trap { 't'; continue }; foreach ($i in 1, 0, 2) { 4 / $i }; 'on'", "4\nt\non\n", ""},
		{"in the loop", "foreach ($i in 1, 0, 2) { trap { 't'; continue }; 4 / $i }", "4\nt\n2\n", ""},
		{"that of a function", "function f { trap { 't'; continue }; 1 / 0; 'in' }; f; 'on'", "t\nin\non\n", ""},
		{"break ends the function, and goes to the trap around it", "trap { 'outer'; continue }; function f { trap { 'inner'; break }; 1 / 0; 'no' }; f; 'on'", "inner\nouter\non\n", ""},
		{"around a function", "trap { 't'; continue }; function f { 1 / 0; 'no' }; f; 'on'", "t\non\n", ""},
		{"in a try", "try { trap { 't'; continue }; 1 / 0; 'in' } catch { 'no' }", "t\nin\n", ""},
		{"variables of its own", "$a = 1; trap { $a = 2; continue }; 1 / 0; $a", "1\n", ""},
		{"$Error", "trap { continue }; 1 / 0; $Error.Count", "1\n", ""},
		{"a command's error that stops", "trap { \"$_\"; continue }; Set-Thing bad -ErrorAction Stop; 'on'", "no such thing\non\n", ""},
		{"a command's error is none of it", "trap { 'no'; continue }; Set-Thing bad; 'on'", "on\n", "no such thing"},
		{"return", "function f { trap { return 't' }; 1 / 0; 'no' }; f; 'on'", "t\non\n", ""},
	} {
		out, said, err := play(t, &desk{}, c.script, Limits{})
		if out != c.want || !strings.Contains(said, c.said) || c.said == "" && (said != "" || err != nil) {
			t.Errorf("%s: %s\nprints %q, want %q\nsays %q, want %q\n%v", c.name, c.script, out, c.want, said, c.said, err)
		}
	}
}

// TestTrap_Ends: break ends the script with the error, as does one that no trap of its block takes; none takes what a limit has ended.
func TestTrap_Ends(t *testing.T) {
	for script, want := range map[string]string{"trap { 't'; break }; 1 / 0; 'no'": "t\n",
		"trap [TimeoutException] { 'no' }; 1 / 0; 'on'":                            "",
		"function f { trap [TimeoutException] { 'no' }; 1 / 0; 'on' }\nf; 'after'": ""} {
		out, _, err := play(t, &desk{}, script, Limits{})
		var run *RunError
		if out != want || !errors.As(err, &run) || !strings.Contains(err.Error(), "Attempted to divide by zero.") {
			t.Errorf("%s: %q %v", script, out, err)
		}
	}
	var limit *LimitError
	for _, script := range []string{"trap { 'no'; continue }; while (1) { }", "function f { trap { f; continue }; 1 / 0 }; f"} {
		if out, _, err := play(t, &desk{}, script, Limits{Steps: 5000}); out != "" || !errors.As(err, &limit) {
			t.Errorf("%s: %q %v", script, out, err)
		}
	}
}
