package powershell

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// texts of any characters that a script may hold, with those that mean something more often.
var anyText = rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("'\"`$(){}@#<>|;&,-–“”‘’[]. \n\t=:%\\")), rapid.Rune().Filter(func(r rune) bool {
	return r != 0 && r != '\r' && r != 0xfffd
})))

// value returns what the only expression of a script is.
func value(t *rapid.T, source string) any {
	s, err := Parse(source)
	if err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	in := New(Config{Host: &desk{}, Out: io.Discard, Err: io.Discard})
	in.ctx = context.Background()
	v, err := in.value(s.code.end[0])
	if err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	return v
}

// TestQuoting: any text in single quotes with these doubled, or in double quotes with a backtick before what means something, is
// itself again (about_Quoting_Rules): as a value, and as an argument.
func TestQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText.Draw(t, "text")
		var single, double strings.Builder
		for _, r := range text {
			if singleQuote(r) {
				single.WriteRune(r)
			}
			single.WriteRune(r)
			if doubleQuote(r) || r == '$' || r == '`' {
				double.WriteRune('`')
			}
			double.WriteRune(r)
		}
		for _, quoted := range []string{"'" + single.String() + "'", `"` + double.String() + `"`} {
			if got := value(t, quoted); got != text {
				t.Fatalf("%q is %q, want %q", quoted, got, text)
			}
			if got := value(t, "Write-Output "+quoted); got != text {
				t.Fatalf("Write-Output %q: %q, want %q", quoted, got, text)
			}
		}
	})
}

// TestHereString: text in a here-string is itself, unless a line of it ends it.
func TestHereString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText.Draw(t, "text")
		for _, line := range strings.Split(text, "\n") {
			if len([]rune(line)) > 1 && singleQuote([]rune(line)[0]) && []rune(line)[1] == '@' {
				return
			}
		}
		if got := value(t, "@'\n"+text+"\n'@"); got != text {
			t.Fatalf("%q is %q", text, got)
		}
	})
}

// TestArithmetic: whole numbers are computed as they are while their result is one, and never overflow unnoticed.
func TestArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		for _, op := range []string{"+", "-", "*"} {
			v, err := arithmetic(op, a, b)
			if err != nil {
				t.Fatal(err)
			}
			f, _ := arithmetic(op, float64(a), float64(b))
			if n, whole := v.(int64); whole && !near(float64(n), f.(float64)) {
				t.Fatalf("%d %s %d is %d, want about %g", a, op, b, n, f)
			}
		}
	})
}

func near(a, b float64) bool {
	d := a - b
	return d < 1e4 && d > -1e4 || d/b < 1e-9 && d/b > -1e-9
}

// FuzzParse: any text is a script or a SyntaxError, and a script runs within its limits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"Get-Thing | ? {$_.Size -gt 1} | ft Name", "$a = @{x = 1}; \"$($a.x)\"", "if (1) { 'a' } else { }",
		"foreach ($i in 1..3) { $i }", "@'\nx\n'@", "Set-Thing a -Enabled:$false `\n -Priority 3", "1,2,3 -contains 2", "(Get-Thing).Name[0]",
		"'{0:X}' -f 5", "[int]'5' + 1", "& args.exe @x > y", "$x.y.z = 5; $i++", "while ($true) { }", "function f([int]$a = 1, [switch]$s) { process { f $_ } }; 1, 2 | f -s", "$b = { & $b }; & $b",
		"function g { [CmdletBinding()] param([Parameter(Mandatory, ValueFromPipeline)][ValidateSet('a', 'b')][string[]]$n) $n }; 'a' | g", "try { throw 1; 5 } catch [Exception] { throw } finally { $error[0] }", "switch -regex (1, 'a') { 1 { 'x' } '^a' { $_; break } default { } }",
		"class A : B { static [int]$X = 1; A([int]$y) : base($y) { $this.X = $y } [void] F() { return } }; class B { B($z) { } }; [A]::new(1).F(); enum E { P; Q = 3 }",
		"[CmdletBinding()] param([int]$a = 5) trap [Exception] { continue } 1 / 0", ":a for ($i = 0; $i -lt 3; $i++) { do { continue a } until (1) }"} {
		f.Add(s)
	}
	if text, err := os.ReadFile(filepath.Join("..", "cmdlets", "testdata", "manuals.tsv")); err == nil {
		for line := range strings.Lines(string(text)) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		s, err := Parse(source)
		var syntax *SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 {
				t.Fatalf("%q: %v", source, err)
			}
			return
		}
		if strings.Contains(strings.ToLower(source), "sleep") {
			return
		}
		in := New(Config{Host: &desk{files: nil}, Out: io.Discard, Err: io.Discard,
			Limits: Limits{Steps: 1000, Memory: 1 << 20, Output: 1 << 20}})
		_ = in.Run(context.Background(), s)
	})
}
