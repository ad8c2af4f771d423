package powershell

import (
	"errors"
	"strings"
	"testing"
)

// TestFunctions: how functions take arguments and return results (about_Functions, about_Functions_Advanced_Parameters, about_Scopes).
func TestFunctions(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"results are what statements return", "function f { 1; 'a'; $x = 5; Get-Thing one | % Name }; f", "1\na\none\n"},
		{"return ends it", "function f { 1; return 2; 3 }; f; 'on'", "1\n2\non\n"},
		{"return in a loop in it", "function f { foreach ($i in 1..5) { if ($i -eq 2) { return $i } } }; f", "2\n"},
		{"$args", "function f { \"$($args.Count): $args\" }; f; f a 'b c' 3; f 1, 2 x", "0: \n3: a b c 3\n2: System.Object[] x\n"},
		{"names that are none of a parameter are in $args", "function f($a) { \"$a|$args\" }; f -foo 5 6 -bar:7", "5|-foo 6 -bar 7\n"},
		{"parameters behind the name", "function f($a, $b) { \"$a-$b\" }; f 1 2; f -b 1 -a 2; f -b 1 2", "1-2\n2-1\n2-1\n"},
		{"param", "function f {\n  # about it\n  param(\n    $a, # one\n    $b\n  )\n  \"$a-$b\"\n}\nf 1 2", "1-2\n"},
		{"short names of parameters", "function f($Adapter, $Priority) { \"$Adapter-$Priority\" }; f -ad x -P 3", "x-3\n"},
		{"defaults", "function f($a = 5, $b = $a * 2, $c = (Get-Thing two).Size, $d = @(1, 2)) { \"$a $b $c $d\" }; f; f 1", "5 10 2 1 2\n1 2 2 1 2\n"},
		{"types", "function f([int]$a, [string]$b, [int[]]$c) { $a + 1; $b + 1; $c[0] + 1 }; f '5' 6 '7', 8", "6\n61\n8\n"},
		{"text as written", "function f([string]$a, $b) { \"$a $b\" }; f 007 007", "007 7\n"},
		{"types have a value for nothing", "function f([int]$a, [string]$b, [bool]$c, $d, [switch]$e) { $a; \"<$b>\"; $c; $null -eq $d; $e }; f", "0\n<>\nFalse\nTrue\nFalse\n"},
		{"switches", "function f([switch]$s, $a) { \"$s $a\" }; f 1; f -s 1; f 1 -s:$false", "False 1\nTrue 1\nFalse 1\n"},
		{"a parameter keeps its type", "function f([int]$a) { $a = '7'; $a + 1 }; f 5", "8\n"},
		{"a mandatory parameter that is given", "function f { param([Parameter(Mandatory)]$a) $a }; f 5; f -a 6", "5\n6\n"},
		{"positions as said", "function f { param([Parameter(Position=1)]$a, [Parameter(Position=0)]$b) \"$a $b\" }; f 1 2", "2 1\n"},
		{"aliases", "function f([Alias('n', 'Nm')]$Name) { $Name }; f -nm 5", "5\n"},
		{"the rest of the values", "function f { param($a, [Parameter(ValueFromRemainingArguments)]$b) \"$a|$b\" }; f 1 2 3", "1|2 3\n"},
		{"sets of parameters", "function f { [CmdletBinding(DefaultParameterSetName='x')] param([Parameter(ParameterSetName='x')]$a, " +
			"[Parameter(ParameterSetName='y', Mandatory)]$b) $PSCmdlet.ParameterSetName }; f; f -a 1; f -b 1", "x\nx\ny\n"},
		{"a mandatory list that may be empty", "function f { param([Parameter(Mandatory)][AllowEmptyCollection()]$a) $a.Count }; f @()", "0\n"},
		{"$PSBoundParameters", "function f($a, $b) { $PSBoundParameters.Keys; $PSBoundParameters.ContainsKey('a') }; f -b 1", "b\nFalse\n"},
		{"$MyInvocation", "function Get-It { $MyInvocation.MyCommand.Name }; get-it", "Get-It\n"},
		{"splatting", "function f($a, $b) { \"$a $b\" }; $p = @{b = 1; a = 2}; f @p; $l = 3, 4; f @l", "2 1\n3 4\n"},
		{"begin, process and end", "function f { begin { 'b' } process { $_ * 2 } end { 'e' } }; 1, 2 | f; f", "b\n2\n4\ne\nb\ne\n"},
		{"filter", "filter f { $_ + 1 }; 1, 2 | f", "2\n3\n"},
		{"filter with a parameter", "filter f($n) { $_ + $n }; 1, 2 | f 10", "11\n12\n"},
		{"$input", "function f { foreach ($i in $input) { $i * 2 }; 'e' }; 1, 2 | f", "2\n4\ne\n"},
		{"a parameter of the pipe", "function f { param([Parameter(ValueFromPipeline)]$x) process { \"<$x>\" } }; 1, 2 | f; f 3", "<1>\n<2>\n<3>\n"},
		{"without process it is the last", "function f { param([Parameter(ValueFromPipeline)]$x) $x }; 1, 2 | f", "2\n"},
		{"a property of the pipe", "function f { param([Parameter(ValueFromPipelineByPropertyName)]$Size, [Alias('Name')][Parameter(ValueFromPipelineByPropertyName)]$n) " +
			"process { \"$n=$Size\" } }; Get-Thing t* | f", "two=2\nthree=3\n"},
		{"a mandatory parameter of the pipe", "function f { param([Parameter(Mandatory, ValueFromPipeline)][int]$x) process { $x + 1 } }; '1', '2' | f", "2\n3\n"},
		{"return in process goes to the next object", "function f { process { if ($_ -eq 1) { return 'one' }; $_ } }; 1, 2 | f", "one\n2\n"},
		{"variables are its own", "$x = 1; function f { $x; $x = 2; $x }; f; $x", "1\n2\n1\n"},
		{"$script: and $global:", "$n = 0; function f { $script:n++; $global:g = 'g' }; f; f; $n; $g", "2\ng\n"},
		{"what it calls sees its variables", "function g { \"g $x\" }; function f { $x = 5; g }; f; \"<$x>\"", "g 5\n<>\n"},
		{"$private: is not seen", "function g { \"g <$x>\" }; function f { $private:x = 5; g; $x }; f", "g <>\n5\n"},
		{"behind a dot it runs in the caller's scope", "function f { $x = 5 }; . f; $x; . { $y = 6 }; $y", "5\n6\n"},
		{"a function in a function", "function f { function g { 'g' }; g }; f; try { g } catch { 'none' }", "g\nnone\n"},
		{"a global function in a function", "function f { function global:g { 'g' } }; f; g", "g\n"},
		{"recursion", "function fact($n) { if ($n -le 1) { return 1 }; $n * (fact ($n - 1)) }; fact 10; (fact 20).GetType().Name", "3628800\nInt64\n"},
		{"deep recursion", "function d($n) { if ($n -eq 0) { 'deep' } else { d ($n - 1) } }; d 900", "deep\n"},
		{"a function hides a command", "function Get-Thing { 'mine' }; Get-Thing; (NetQos\\Get-Thing).Count", "mine\n3\n"},
		{"as a value", "function f($a) { $a * 2 }; $x = (f 2) + (f 3); $x; \"$(f 4)\"", "10\n8\n"},
		{"in a pipe", "function f { 1, 2, 3 }; f | Where-Object { $_ -gt 1 } | Measure-Object | % Count", "2\n"},
		{"blocks have parameters", "& { param($a, $b = 2) $a + $b } 5; $b = { param([switch]$s) $s }; & $b -s", "7\nTrue\n"},
		{"blocks have $args and a scope", "$x = 1; & { $x = 2; $args[0] } 'a'; $x", "a\n1\n"},
		{"blocks take a pipe", "1, 2 | & { process { $_ + 1 } }; 1, 2 | & { $input.Count }", "2\n3\n2\n"},
		{"break in a function leaves the loop that calls it", "function f { break }; foreach ($i in 1, 2) { $i; f }; 'on'", "1\non\n"},
		{"exit in a function ends the script", "function f { 'f'; exit }; f; 'on'", "f\n"},
		{"throw in a function", "function f { throw 'x'; 'no' }; try { f; 'no' } catch { \"$_\" }", "x\n"},
		{"an error in a function that a try calls", "function f { 1 / 0; 'no' }; try { f } catch { 'c' }", "c\n"},
		{"-ErrorAction holds for what it calls", "function f { [CmdletBinding()] param() Set-Thing bad; 'on' }; f -ErrorAction SilentlyContinue; " +
			"try { f -ErrorAction Stop } catch { \"c $_\" }", "on\nc no such thing\n"},
		{"-OutVariable", "function f { [CmdletBinding()] param() 1; 2 }; f -OutVariable v | Out-Null; $v.Count", "2\n"},
		{"-Verbose", "function f { [CmdletBinding()] param() $VerbosePreference }; f -Verbose; \"<$VerbosePreference>\"", "Continue\n<SilentlyContinue>\n"},
		{"[OutputType()]", "function f { [OutputType([string])] [CmdletBinding()] param() 'x' }; f", "x\n"},
		{"ValidateSet", "function f([ValidateSet('Up', 'Down')]$a) { $a }; f up", "up\n"},
		{"ValidateScript", "function f([ValidateScript({ $_ -gt 5 })]$a) { $a }; f 6", "6\n"},
		{"a default that is nothing", "function f([string]$a = $null, [int]$b = -1) { \"<$a> $b\" }; f", "<> -1\n"},
		{"an empty function", "function f { }; f; function g() { }; g; 'on'", "on\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if err != nil || out != c.want {
				t.Errorf("%s\nprints %q, want %q\nsays %s\n%v", c.script, out, c.want, said, err)
			}
		})
	}
}

// TestFunctions_Refused: wrong arguments are refused with what is allowed, and so is what is not understood of a function.
func TestFunctions_Refused(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"function f { param([Parameter(Mandatory)]$a) 'no' }; f", "f: parameter -a is missing"},
		{"function f { param([Parameter(Mandatory)][string]$a) 'no' }; f ''", "parameter -a is empty"},
		{"function f { param([Parameter(Mandatory)]$a) 'no' }; f $null", "parameter -a is nothing ($null)"},
		{"function f { [CmdletBinding()] param($a) 'no' }; f 1 2", `no parameter takes "2"; allowed: -a -Verbose`},
		{"function f { [CmdletBinding()] param($a) 'no' }; f -b 2", "parameter -b; allowed: -a"},
		{"function f { [CmdletBinding(PositionalBinding=$false)] param($a) 'no' }; f 2", `no parameter takes "2"`},
		{"function f([int]$a) { 'no' }; f x", `parameter -a is "x"; allowed: [int]`},
		{"function f($aa, $ab) { 'no' }; f -a 1", "parameter -a is short for more than one: -aa -ab"},
		{"function f([ValidateSet('Up', 'Down')]$a) { 'no' }; f left", `parameter -a is "left"; allowed: Up, Down`},
		{"function f([ValidateRange(-5, 0)][int]$a) { 'no' }; f 1", `parameter -a is "1"; allowed: -5 to 0`},
		{"function f([ValidateLength(1, 2)]$a) { 'no' }; f abc", "allowed: 1 to 2 characters"},
		{"function f([ValidateCount(1, 2)]$a) { 'no' }; f 1, 2, 3", "allowed: 1 to 2 values"},
		{"function f([ValidatePattern('^a')]$a) { 'no' }; f b", "allowed: what matches ^a"},
		{"function f([ValidateScript({ $_ -gt 5 })]$a) { 'no' }; f 5", "ValidateScript"},
		{"function f([ValidateNotNullOrEmpty()]$a) { 'no' }; f ''", "parameter -a is nothing"},
		{"function f { param([Parameter(ValueFromPipeline)][int]$a) process { 'no' } }; 'x' | f", "takes nothing of a value of System.String from the pipe"},
		{"function f { [CmdletBinding()] param($a) 'no' }; try { 1 | f -ErrorAction Stop } catch { throw }", "takes nothing of a value"},
		{"function f { param([Parameter(ParameterSetName='x')]$a, [Parameter(ParameterSetName='y')]$b) }; f -a 1 -b 2", "-a and -b exclude each other"},
		{"function { }", "function wants a name here, not '{'"},
		{"function x:f { }", "cannot begin with x:; allowed: global, script, local, private"},
		{"function f($a, $A) { }", "parameter $A stands twice"},
		{"function f($a) { param($b) }", "parameters behind its name or in param, not both"},
		{"function f { param([foo]$a) }", "type [foo] is not in the part of PowerShell that is understood; allowed: string, bool"},
		{"function f { param([ArgumentCompleter({})]$a) }", "attribute [argumentcompleter()] is not in the part"},
		{"function f { param([Parameter(Loud)]$a) }", `Parameter has no argument "loud" here; allowed: Mandatory`},
		{"function f { [CmdletBinding(ConfirmImpact='High')] param() }", `CmdletBinding has no argument "confirmimpact" here; allowed`},
		{"function f { [CmdletBinding()] 5 }", "an attribute of a function wants param behind it"},
		{"function f { param([ValidateSet($x)]$a) }", "an attribute wants a constant here"},
		{"function f { param([ValidateRange(1)]$a) }", "has 1 arguments; allowed: 2 to 2"},
		{"function f { process { } 5 }", "beside begin, process and end nothing else can stand here"},
		{"function f { process { } process { } }", "process stands twice"},
		{"filter f { process { } }", "a filter is a process block itself"},
		{"function f { dynamicparam { } }", "dynamicparam is not in the part"},
		{"1\nparam($a)", "param stands at the beginning of a script, a function or a block only"},
		{"function f {", "function wants '}' here, not the end of the script"},
		{"1 | % { process { $_ } }", "only understood behind & or a dot"},
	} {
		out, said, err := play(t, &desk{}, c.script, Limits{})
		if err == nil || !strings.Contains(said+err.Error(), c.want) || strings.Contains(out, "no\n") && !strings.Contains(c.script, "$ab") {
			t.Errorf("%s\n prints %q, says %q, %v; want %q", c.script, out, said, err, c.want)
		}
	}
}

// TestFunctions_WhatIf: with -WhatIf nothing that it calls changes anything, and -Confirm asks.
func TestFunctions_WhatIf(t *testing.T) {
	const script = "function f { [CmdletBinding(SupportsShouldProcess)] param($a) if ($PSCmdlet.ShouldProcess($a, 'Do it')) { 'done' }; Set-Thing $a }\n"
	out, said, err := play(t, &desk{}, script+"f x -WhatIf", Limits{})
	if out != "" || strings.Count(said, "What if: ") != 2 || !strings.Contains(said, `"Do it" on target "x"`) || err != nil {
		t.Errorf("-WhatIf: %q %q %v", out, said, err)
	}
	d := &desk{answer: true}
	if out, _, err := play(t, d, script+"f x -Confirm", Limits{}); out != "done\nset x 0 False []\n" || len(d.asked) != 2 || err != nil {
		t.Errorf("-Confirm: %q %q %v", out, d.asked, err)
	}
	if out, _, err := play(t, &desk{}, script+"f x", Limits{}); out != "done\nset x 0 False []\n" || err != nil {
		t.Errorf("neither: %q %v", out, err)
	}
}

// TestRecursion: recursion without an end is ended by its limit, which no catch takes, however the functions call each other.
func TestRecursion(t *testing.T) {
	for _, script := range []string{"function f { f }; f", "function f { try { f } catch { 'no' } finally { f } }; f", "function f { 1 | % { f } }; f",
		"function f($a = (f)) { }; f", "function f { \"$(f)\" }; f", "function f { process { 1 | f } }; f", "$b = { & $b }; & $b",
		"function f { g }; function g { switch (1) { 1 { f } } }; f", "function f([ValidateScript({ f 1 })]$a) { }; f 1"} {
		out, _, err := play(t, &desk{}, script, Limits{})
		var limit *LimitError
		if out != "" || !errors.As(err, &limit) || !strings.Contains(err.Error(), "calls of functions in each other than are allowed: 1000") {
			t.Errorf("%s: %q %v", script, out, err)
		}
	}
}
