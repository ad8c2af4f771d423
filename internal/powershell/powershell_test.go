package powershell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// desk is a host with a few commands, and files in memory.
type desk struct {
	files  map[string]*bytes.Buffer
	answer bool
	asked  []string
}

type file struct{ *bytes.Buffer }

func (file) Close() error { return nil }

func (d *desk) Create(name string, add bool) (io.WriteCloser, error) {
	if d.files == nil {
		d.files = map[string]*bytes.Buffer{}
	}
	if d.files[name] == nil || !add {
		d.files[name] = &bytes.Buffer{}
	}
	return file{d.files[name]}, nil
}

func (d *desk) Confirm(q string) (bool, error) { d.asked = append(d.asked, q); return d.answer, nil }
func (d *desk) Modules() []string              { return []string{"Desk"} }
func (d *desk) Getenv(name string) string      { return map[string]string{"HOME": "/home/x"}[name] }

func (d *desk) Program(_ context.Context, name string, args []string, out, _ io.Writer) (int, bool) {
	if name != "args.exe" {
		return 0, false
	}
	fmt.Fprintf(out, "%q\n", args)
	return 0, true
}

func (d *desk) Cmdlet(name string) *Cmdlet {
	for _, c := range []*Cmdlet{
		{Name: "Get-Thing", Params: []Param{{Name: "Name", Kind: Strings, Position: 1, Aliases: []string{"Alias"}}, {Name: "IncludeHidden", Kind: Switch}},
			Run: func(c *Call) error {
				for i, n := range []string{"one", "two", "three"} {
					o := NewObject("Thing", "Name", "Size").With("Name", n).With("Size", int64(i+1)).With("Even", i%2 == 1)
					if names := c.Texts("Name"); len(names) == 0 || Like(n, names[0]) {
						c.Emit(o)
					}
				}
				return nil
			}},
		{Name: "Set-Thing", Changes: true, Params: []Param{{Name: "Name", Kind: String, Position: 1, Mandatory: true, Piped: true},
			{Name: "PriorityValue8021Action", Kind: Number, Max: 7}, {Name: "Enabled", Kind: Bool}, {Name: "Store", Kind: String, Set: "a"},
			{Name: "Default", Kind: Switch, Set: "b"}, {Name: "Ids", Kind: Strings}},
			Run: func(c *Call) error {
				if c.Text("Name") == "bad" {
					return errors.New("no such thing")
				}
				if c.Should("Set", c.Text("Name")) {
					c.Emit(fmt.Sprintf("set %s %v %v %v", c.Text("Name"), c.Number("PriorityValue8021Action"), Text(c.Bool("Enabled")), c.Texts("Ids")))
				}
				return nil
			}},
	} {
		if c.Is(name) {
			return c
		}
	}
	return nil
}

// play runs a script and returns what it prints and says.
func play(t testing.TB, d *desk, source string, limits Limits) (out, said string, err error) {
	t.Helper()
	if d.files == nil {
		d.files = map[string]*bytes.Buffer{}
	}
	s, err := Parse(source)
	if err != nil {
		return "", "", err
	}
	var o, e bytes.Buffer
	in := New(Config{Host: d, Out: &o, Err: &e, Limits: limits})
	err = in.Run(context.Background(), s)
	if err == nil && in.Failures() > 0 {
		err = fmt.Errorf("%d failed", in.Failures())
	}
	return o.String(), e.String(), err
}

// TestLanguage: each script prints what PowerShell prints.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"numbers", "1 + 2 * 3; 7 / 2; 8 / 2; 2KB; 0x1F; 1.5; -3", "7\n3.5\n4\n2048\n31\n1.5\n-3\n"},
		{"text", `$a = "x"; "a${a}b $a.y $($a.Length)"; 'it''s $a'; "q""q"; "` + "`$a`tb" + `"`, "axb x.y 1\nit's $a\nq\"q\n$a\tb\n"},
		{"here-strings", "$a = 1\n@\"\nis $a\n\"quoted\"\n\"@\n@'\nis $a\n'@", "is 1\n\"quoted\"\nis $a\n"},
		{"typographic quotes and dashes", "“x” + ‘y’; Set-Thing –Name “a b” —Enabled 1", "xy\nset a b 0 True []\n"},
		{"comparison", `"A" -eq "a"; "A" -ceq "a"; 2 -gt 10; "2" -gt "10"; 10 -eq "10"; "x1" -match "x(\d)"; $matches[1]; "abc" -like "A*c"`,
			"True\nFalse\nFalse\nTrue\nTrue\nTrue\n1\nTrue\n"},
		{"nothing and times", "\"<$($null * 2)>\"; 2 * $null; $null + 2", "<>\n0\n2\n"},
		{"lists in lists as text", "(1, (2, 3), 4) -join ','; \"$(1, (2, 3))\"; $OFS = '-'; \"$(1, 2)\"", "1,System.Object[],4\n1 System.Object[]\n1-2\n"},
		{"a list of one", ", 1; ,(1, 2) | % { $_.Count }; (,1).Count", "1\n2\n1\n"},
		{"a table in a table", "[pscustomobject]@{A = @{x = 1; y = 2}} | fl", "\nA : {x, y}\n\n"},
		{"formats round a half away from zero", "'{0:f1} {1:n0} {2:f2} {3:f1}|{4}' -f 2.25, 2.5, -1.005, 0.15, $null; '<{0}>' -f $null",
			"2.3 3 -1.01 0.2|\n<>\n"},
		{"preferences", "$ErrorActionPreference; $WarningPreference; $VerbosePreference; $ConfirmPreference; $WhatIfPreference",
			"Continue\nContinue\nSilentlyContinue\nHigh\nFalse\n"},
		{"methods by name", "'abc', 'd' | % ToUpper; 'ab' | % Length", "ABC\nD\n2\n"},
		{"more methods of text", "'abc'.PadLeft(5, '.'); 'abc'.Insert(1, '-'); 'abc'.Remove(1); 'abcd'.Remove(1, 2); 'x'.CompareTo('y'); 'ab'.ToCharArray().Count",
			"..abc\na-bc\na\nad\n-1\n2\n"},
		{"more of types", "[math]::Pow(2, 10); [math]::PI -gt 3.14; [string]::Format('{0}-{1}', 1, 2)", "1024\nTrue\n1-2\n"},
		{"groups of values", "'a', 'b', 'a' | group | % { \"$($_.Name)=$($_.Count)\" }; 1, 2, 3 | select -Index 1, 2", "a=2\nb=1\n2\n3\n"},
		{"measures in order", "1, 2, 3 | measure -Max -Min -Sum -Av | fl",
			"\nCount   : 3\nAverage : 2\nSum     : 6\nMaximum : 3\nMinimum : 1\n\n"},
		{"a variable of the environment that there is not", "$env:NOPE -eq $null; \"$env:NOPE|\"", "True\n|\n"},
		{"several words", "Write-Host a b 1", "a b 1\n"},
		{"lists", `1,2,3 -contains 2; 2 -in 1,2; (1,2,3)[-1]; (1..4).Count; @().Count; (1,2,3,2 -eq 2).Count; 1,2 + 3`, "True\nTrue\n3\n4\n0\n2\n1\n2\n3\n"},
		{"logic", `$true -and !$false; -not 1 -or 0; $null -eq $x`, "True\nFalse\nTrue\n"},
		{"if", "if (1 -gt 2) { 'a' } elseif ($false) { 'b' }\nelse { 'c' }", "c\n"},
		{"foreach", "foreach ($i in 1..5) { if ($i -eq 2) { continue }; if ($i -eq 4) { break }; $i }", "1\n3\n"},
		{"while", "$i = 0; while ($i -lt 3) { $i++; $i }", "1\n2\n3\n"},
		{"assignment", "$a = 1; $a += 2; $a; $h = @{x = 1; 'y' = 2}; $h.x = 5; $h['z'] = 6; $h.x + $h.y + $h.z; $h.Count", "3\n13\n3\n"},
		{"pipes", "Get-Thing | Where-Object Size -gt 1 | ForEach-Object { $_.Name }", "two\nthree\n"},
		{"block filter", "Get-Thing | ? {$_.Even -and $_.Name -match 'w'} | % Size", "2\n"},
		{"properties", "(Get-Thing).Name; (Get-Thing two).Size; (Get-Thing). Size", "one\ntwo\nthree\n2\n1\n2\n3\n"},
		{"sort and select", "Get-Thing | sort Size -Descending | select -First 1 -ExpandProperty Name", "three\n"},
		{"measure", "(Get-Thing | measure Size -Sum).Sum", "6\n"},
		{"table", "Get-Thing t*", "\nName  Size\n----  ----\ntwo      2\nthree    3\n\n"},
		{"list", "Get-Thing one | Format-List", "\nName : one\nSize : 1\nEven : False\n\n"},
		{"calculated", "Get-Thing one | ft @{n='N';e={$_.Size * 2}}, name", "\nN Name\n- ----\n2 one\n\n"},
		{"json", "Get-Thing one | ConvertTo-Json -Compress", `{"Name":"one","Size":1,"Even":false}` + "\n"},
		{"continued line", "Get-Thing `\n  -Name one | % Name", "one\n"},
		{"comments", "# a\nGet-Thing one | % Name # b\n<# c\n d #> 'e'", "one\ne\n"},
		{"format", `"{0:X2} {1,4} {2:N1} {{x}}" -f 10, 7, 1234.56`, "0A    7 1,234.6 {x}\n"},
		{"methods", `"a,b".Split(","); " x ".Trim().ToUpper(); "abc".Substring(1, 1); "a-b".Replace("-", "+")`, "a\nb\nX\nb\na+b\n"},
		{"replace and split", `"a1b2" -replace "\d","-"; "a b" -split " "; 1,2 -join "+"`, "a-b-\na\nb\n1+2\n"},
		{"groups of replace", `'2024-01-05' -replace '(\d+)-(\d+)-(\d+)', '$3.$2.$1'; 'ab' -replace '(a)(?<x>b)', '${x}_$1y$9$&$$'; 'aXA' -creplace 'x|A', '$'`,
			"05.01.2024\nb_ay$9ab$\naX$\n"},
		{"groups and limits of split", `('1-2+3' -split '([-+])').Count; 'a,b,c' -split ',', 2; ('abc' -split '').Count; -split ' a  b '; 'a,b', 'c' -split ','`,
			"5\na\nb,c\n5\na\nb\na\nb\nc\n"},
		{"join", `(1, 2, 3) -join '-'; -join ('a', 'b'); 'a' -join '-'`, "1-2-3\nab\na\n"},
		{"match", `'key=value' -match '^(?<k>\w+)=(?<v>.*)$'; $Matches.k + $Matches['v']; 'ab', 'cd', 'ae' -match '^a'; 'A' -cmatch 'a'; 'x' -notmatch 'y'`,
			"True\nkeyvalue\nab\nae\nFalse\nTrue\n"},
		{"bits", `5 -band 4; 1 -shl 4; 256 -shr 4; 6 -bxor 3; -bnot 0`, "4\n16\n16\n5\n-1\n"},
		{"the entries of a hash table", `$h = [ordered]@{b = 1; a = 2}; foreach ($e in $h.GetEnumerator()) { "$($e.Key)=$($e.Value)" }; $h.Keys -join ','; $h.Clear(); $h.Count`,
			"b=1\na=2\nb,a\n0\n"},
		{"here-strings with values", "$h = @{n = 5}\n@\"\n$($h.n + 1) $($h['n'])\n  \"x\" 'y' `$z\n\"@", "6 5\n  \"x\" 'y' $z\n"},
		{"casts", `[int]"5" + 1; [string]5 + 1; [bool]0; [int[]]("1","2") | % { $_ + 1 }`, "6\n51\nFalse\n2\n3\n"},
		{"environment", `$env:HOME; "$env:HOME\x"`, "/home/x\n/home/x\\x\n"},
		{"program", `args.exe -Name "a b" -x 5 c,d -e:1 $true; $LASTEXITCODE`, `["-Name" "a b" "-x" "5" "c,d" "-e:1" "True"]` + "\n0\n"},
		{"call operator", `& "Get-Thing" one | % Name; & { 'block' }`, "one\nblock\n"},
		{"splatting", `$p = @{Name = 'a'; Enabled = $true}; Set-Thing @p`, "set a 0 True []\n"},
		{"prefixes", `Set-Thing -Na a -Pri 3 -En:$false`, "set a 3 False []\n"},
		{"words as written", `Set-Thing 007 -Ids 0001,2`, "set 007 0 False [0001 2]\n"},
		{"from the pipe", `Get-Thing t* | Set-Thing -Enabled 1; "x" | Set-Thing`, "set two 0 True []\nset three 0 True []\nset x 0 False []\n"},
		{"static", `[math]::Round(2.567, 1); [math]::Max(2, 5); [math]::Max(1 + 2, 2); "abc".Substring(3 - 2, 1)`, "2.6\n5\n3\nb\n"},
		{"subexpression in a word", `Set-Thing a$(1+1)b`, "set a2b 0 False []\n"},
		{"exit", "'a'; exit; 'b'", "a\n"},
		{"group", "Get-Thing | group Even | % { \"$($_.Name) $($_.Count)\" }", "False 2\nTrue 1\n"},
		{"select string", "'ab','cd' | sls b", "ab\n"},
		{"out-null", "Get-Thing | Out-Null; Get-Thing > $null", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if err != nil || out != c.want {
				t.Errorf("%s\nprints %q, want %q\nsays %s\n%v", c.script, out, c.want, said, err)
			}
		})
	}
}

// TestSyntaxErrors: what is no PowerShell is refused with its place.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"Get-Thing 'x", "line 1, column 11: the string has no closing quote"},
		{"\n  if (1) x", "line 2, column 10: if wants '{' here, not 'x'"},
		{"Set-Thing <VM Name>", "line 1, column 11: <VM Name> stands for something that you have to write instead"},
		{"(1", "line 1, column 1: this has no ')'"},
		{"1 +", "line 1, column 4: an expression cannot begin with the end of the script"},
		{"workflow f { }", "line 1, column 1: workflow is not in the part"},
		{"Get-Thing |", "line 1, column 12: a command or an expression is missing before the end of the script"},
		{"foreach (x in 1) {}", "foreach wants a variable here"},
		{"5 = 3", "only a variable, a property or an element can be set by ="},
		{"a || b", "|| is not in the part"},
		{"}", "missing before '}'"},
		{"$a 5", "the statement should end here"},
		{strings.Repeat("(", 500), "nested deeper than is allowed"},
		{"<# x", "the comment <# has no #>"},
		{"a\x00b", "a zero character"},
	} {
		_, err := Parse(c.script)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %q", c.script, err, c.want)
		}
	}
}

// TestParameters: wrong ones are refused with what is allowed, and the script goes on.
func TestParameters(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"Set-Thing", "Set-Thing: parameter -Name is missing; allowed: string"},
		{"Set-Thing a -Priority 9", `parameter -PriorityValue8021Action is "9"; allowed: 0 to 7`},
		{"Set-Thing a -Nothing 9", "parameter -Nothing; allowed: -Name -PriorityValue8021Action"},
		{"Set-Thing a b", `no parameter takes "b"`},
		{"Set-Thing a -Store x -Default", "-Store and -Default exclude each other"},
		{"Set-Thing a -Enabled maybe", `parameter -Enabled is "maybe"; allowed: $true, $false, 1, 0`},
		{"Set-Thing a -Name", "parameter -Name has no value"},
		{"Set-Thing a -E 1 -En 0", "parameter -Enabled stands twice"},
		{"Set-Thing bad", "line 1, column 1: Set-Thing: no such thing"},
		{"No-Such", `there is no command or tool "No-Such"`},
		{"1 | Get-Thing", "takes nothing from a pipe"},
		{"'a' - 'b'", `"a" is no number`},
	} {
		out, said, err := play(t, &desk{}, c.script+"\n'on'", Limits{})
		text := said
		if err != nil {
			text += err.Error()
		}
		if err == nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %q", c.script, text, c.want)
		}
		if out != "on\n" && !strings.Contains(c.script, "- 'b'") {
			t.Errorf("%s: the script does not go on: %q", c.script, out)
		}
	}
}

// TestPrinted: what pages do to command lines is mended, and said.
func TestPrinted(t *testing.T) {
	for _, c := range []struct{ script, want, said string }{
		{"Set-Thing a - PriorityValue8021Action 3", "set a 3 False []\n", "- PriorityValue8021Action is taken for -PriorityValue8021Action"},
		{"Set-Thing a -PriorityValue8021Action3", "set a 3 False []\n", "taken for -PriorityValue8021Action 3"},
		{"Set-Thing a -Priority-Value8021Action 3", "set a 3 False []\n", "taken for -PriorityValue8021Action"},
	} {
		out, said, err := play(t, &desk{}, c.script, Limits{})
		if err != nil || out != c.want || !strings.Contains(said, c.said) {
			t.Errorf("%s: %q %q %v", c.script, out, said, err)
		}
	}
}

// TestCommonParameters: -WhatIf, -Confirm, -Verbose and -ErrorAction.
func TestCommonParameters(t *testing.T) {
	out, said, err := play(t, &desk{}, "Set-Thing a -WhatIf", Limits{})
	if out != "" || said != "What if: Performing the operation \"Set\" on target \"a\".\n" || err != nil {
		t.Errorf("-WhatIf: %q %q %v", out, said, err)
	}
	d := &desk{answer: false}
	if out, _, _ := play(t, d, "Set-Thing a -Confirm; Set-Thing b -Confirm:$False", Limits{}); out != "set b 0 False []\n" || len(d.asked) != 1 {
		t.Errorf("-Confirm: %q, asked %q", out, d.asked)
	}
	if _, said, _ := play(t, &desk{}, "Set-Thing a -Verbose", Limits{}); !strings.Contains(said, "VERBOSE: Performing") {
		t.Errorf("-Verbose: %q", said)
	}
	if out, said, err := play(t, &desk{}, "Set-Thing bad -ErrorAction SilentlyContinue; $?; 'on'", Limits{}); out != "False\non\n" || said != "" || err != nil {
		t.Errorf("-ErrorAction SilentlyContinue: %q %q %v", out, said, err)
	}
	if out, _, err := play(t, &desk{}, "$ErrorActionPreference = 'Stop'; Set-Thing bad; 'on'", Limits{}); out != "" || err == nil {
		t.Errorf("-ErrorAction Stop: %q %v", out, err)
	}
}

// TestOutFile: results go to a file as they are shown.
func TestOutFile(t *testing.T) {
	d := &desk{}
	out, _, err := play(t, d, "Get-Thing one | % Name | Out-File x.txt; 'b' >> x.txt; 'c' | Out-File y.txt -WhatIf", Limits{})
	if err != nil || out != "" || d.files["x.txt"].String() != "one\nb\n" || d.files["y.txt"] != nil {
		t.Errorf("%q %v: %v", out, err, d.files)
	}
}

// TestLimits: a script costs no more than it may.
func TestLimits(t *testing.T) {
	for _, script := range []string{
		"while (1) { }", "while (1) { 'x' }", "$a = 'x'; while (1) { $a = $a + $a }", "$a = ,1; while (1) { $a += $a }", "1..1000000000",
		"'x' * 1000000000", "$b = { & $b }; & $b", "foreach ($i in 1..1000000) { foreach ($j in 1..1000000) { $i } }",
		"'{0,99999999}' -f 1", "$a = @(); while (1) { $a = $a, $a }", "$a = @(1, 2); $a[0] = $a; \"$a\"", "$a = 1, 2; while (1) { $a = , $a }",
		"$h = @{}; $h.a = $h; $h.b = $h; $h | ConvertTo-Json -Depth 100", "$a = 'aaaaaaaaaa' * 1000; while (1) { $a = $a -replace 'a','aa' }",
	} {
		_, said, err := play(t, &desk{}, script, Limits{Steps: 10000, Memory: 1 << 20, Output: 1 << 16})
		if err == nil {
			t.Errorf("%s: no error, %s", script, said)
		}
	}
}
