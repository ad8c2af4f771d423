package powershell

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// playWith runs a script with arguments.
func playWith(t testing.TB, source string, args ...string) (out, said string, err error) {
	t.Helper()
	s, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	err = New(Config{Host: &desk{}, Out: &o, Err: &e}).Run(t.Context(), s, args...)
	return o.String(), e.String(), err
}

// TestScriptArguments: a script takes the words of its command line as a function takes arguments (about_Scripts, about_Pwsh).
func TestScriptArguments(t *testing.T) {
	const two = "param([string]$Name = 'n', [int]$Count = 2, [switch]$Force, [int[]]$List)\n\"$Name $($Count + 1) $Force $($List.Count)\""
	for _, c := range []struct {
		name, script string
		args         []string
		want         string
	}{
		{"none", two, nil, "n 3 False 0\n"},
		{"by position", two, []string{"a b", "5"}, "a b 6 False 0\n"},
		{"by name, short", two, []string{"-Co", "5", "-F", "x"}, "x 6 True 0\n"},
		{"behind a colon", two, []string{"-Name:y", "-Force:$false"}, "y 3 False 0\n"},
		{"a list", two, []string{"-List", "1,2,3"}, "n 3 False 3\n"},
		{"a negative number is a value", two, []string{"-Count", "-5"}, "n -4 False 0\n"},
		{"text that is empty", two, []string{""}, " 3 False 0\n"},
		{"comments before param", "# about\n<# more #>\n\nparam($a)\n$a", []string{"5"}, "5\n"},
		{"values are text", "param($a) $a.GetType().Name", []string{"5"}, "String\n"},
		{"$args", "\"$($args.Count): $args\"", []string{"a", "-b", "5"}, "3: a -b 5\n"},
		{"$args behind parameters", "param($a) \"$a|$args\"", []string{"1", "2", "3"}, "1|2 3\n"},
		{"$PSBoundParameters", "param($a, $b) $PSBoundParameters.Keys -join ','", []string{"-b", "1"}, "b\n"},
		{"mandatory", "param([Parameter(Mandatory)]$a) $a", []string{"-a", "1"}, "1\n"},
		{"an advanced script", "[CmdletBinding(SupportsShouldProcess)] param($a) Set-Thing $a", []string{"x", "-WhatIf"}, ""},
		{"parts", "param($a) begin { 'b' } process { 'p' } end { $a }", []string{"1"}, "b\np\n1\n"},
		{"return", "param($a) if ($a) { return $a }; 'no'", []string{"1"}, "1\n"},
		{"functions see them", "param($a) function f { $a }; f; $script:a", []string{"1"}, "1\n1\n"},
		{"no parameters but brackets", "[int]$x = '5'\n$x + 1", nil, "6\n"},
		{"param of nothing", "param()\n'on'", nil, "on\n"},
	} {
		if out, said, err := playWith(t, c.script, c.args...); out != c.want || err != nil {
			t.Errorf("%s: prints %q, want %q; says %q, %v", c.name, out, c.want, said, err)
		}
	}
}

// TestScriptArguments_Wrong: what a script does not take is refused before anything of it runs.
func TestScriptArguments_Wrong(t *testing.T) {
	for _, c := range []struct {
		script string
		args   []string
		want   string
	}{
		{"param([Parameter(Mandatory)]$Name) 'no'", nil, "parameter -Name is missing"},
		{"param([Parameter(Mandatory)][string]$Name) 'no'", []string{""}, "parameter -Name is empty"},
		{"param([int]$n) 'no'", []string{"x"}, `parameter -n is "x"; allowed: [int]`},
		{"param([ValidateSet('a', 'b')]$n) 'no'", []string{"c"}, `parameter -n is "c"; allowed: a, b`},
		{"param($n) 'no'", []string{"-n"}, "parameter -n has no value"},
		{"param($n) 'no'", []string{"-n", "1", "-n:2"}, "parameter -n stands twice"},
		{"param($n) 'no'", []string{"-x", "1"}, `takes no argument "-x" and does not use $args; allowed: -n`},
		{"'no'", []string{"-WhatIf"}, `takes no argument "-WhatIf" and does not use $args; allowed: none`},
		{"[CmdletBinding()] param($n) 'no'", []string{"1", "2"}, `no parameter takes "2"`},
		{"[CmdletBinding()] param($n) 'no'", []string{"-WhatIf"}, "parameter -WhatIf; allowed: -n -Verbose"},
	} {
		out, _, err := playWith(t, c.script, c.args...)
		var wrong *ArgumentError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s %q: prints %q, %v; want %q", c.script, c.args, out, err, c.want)
		}
	}
}
