package powershell

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// TestTry: what of a script runs after an error (about_Try_Catch_Finally, about_Throw, about_Error_Handling). said are the errors that
// are printed, which are none of what is caught.
func TestTry(t *testing.T) {
	for _, c := range []struct{ name, script, want, said string }{
		{"throw is caught", "try { 'a'; throw 'boom'; 'b' } catch { \"caught $_\" }; 'on'", "a\ncaught boom\non\n", ""},
		{"nothing to catch", "try { 'a' } catch { 'b' } finally { 'c' }", "a\nc\n", ""},
		{"on lines", "try {\n  throw 'x'\n}\ncatch {\n  'y'\n}\nfinally {\n  'z'\n}", "y\nz\n", ""},
		{"finally runs behind a catch that throws", "try { try { throw 'x' } catch { throw 'y' } finally { 'f' } } catch { \"$_\" }", "f\ny\n", ""},
		{"finally without catch", "try { try { throw 'x' } finally { 'f' } } catch { 'c' }", "f\nc\n", ""},
		{"finally runs before exit", "try { exit } finally { 'f' }; 'no'", "f\n", ""},
		{"finally runs before break", "foreach ($i in 1, 2) { try { break } finally { 'f' } }; 'on'", "f\non\n", ""},
		{"throw in catch without a value is the same again", "try { try { throw 'x' } catch { throw } } catch { \"again $_\" }", "again x\n", ""},
		{"throw $_", "try { try { throw 'x' } catch { throw $_ } } catch { \"again $_\" }", "again x\n", ""},
		{"throw alone", "try { throw } catch { \"$_\" }", "ScriptHalted\n", ""},
		{"throw of an object", "try { throw @{n = 5} } catch { $_.TargetObject.n }", "5\n", ""},
		{"throw of an exception", "try { throw [ArgumentException]::new('bad') } catch [System.ArgumentException] { $_.Exception.Message }", "bad\n", ""},
		{"throw of an exception by its message", "try { throw [System.TimeoutException]'late' } catch { $_.Exception.GetType().Name }", "TimeoutException\n", ""},
		{"an operator", "try { 1 / 0; 'no' } catch { $_.Exception.Message }", "Attempted to divide by zero.\n", ""},
		{"a type", "try { 1 / 0 } catch [System.DivideByZeroException] { 'zero' } catch { 'other' }", "zero\n", ""},
		{"one of more types", "try { [int]'x' } catch [TimeoutException], [InvalidCastException] { 'cast' }", "cast\n", ""},
		{"a special case of a type", "try { 1 / 0 } catch [ArithmeticException] { 'a' }; try { no-such } catch [Exception] { 'b' }", "a\nb\n", ""},
		{"no catch takes it", "try { try { throw 'x' } catch [TimeoutException] { 'no' } } catch { 'outer' }", "outer\n", ""},
		{"no catch takes what ends a statement only", "try { 1 / 0 } catch [TimeoutException] { 'no' }; 'on'", "on\n", "line 1, column 9: Attempted to divide by zero."},
		{"a command that there is not", "try { No-Such } catch [System.Management.Automation.CommandNotFoundException] { 'none' }", "none\n", ""},
		{"a wrong parameter", "try { Set-Thing a -Priority 9 } catch { $_.CategoryInfo.Category }", "InvalidArgument\n", ""},
		{"a command's error is none to catch", "try { Set-Thing bad; 'on' } catch { 'no' }", "on\n", "line 1, column 7: Set-Thing: no such thing"},
		{"unless -ErrorAction says Stop", "try { Set-Thing bad -ErrorAction Stop; 'no' } catch { \"$_\" }", "no such thing\n", ""},
		{"or the preference", "$ErrorActionPreference = 'Stop'; try { Set-Thing bad; 'no' } catch { \"$_\" }", "no such thing\n", ""},
		{"the type of commands' errors", "try { Set-Thing bad -ea Stop } catch [Microsoft.Management.Infrastructure.CimException] { 'cim' }", "cim\n", ""},
		{"Write-Error", "try { Write-Error 'w' -ErrorAction Stop } catch { \"$_ $($_.Exception.GetType().Name)\" }", "w WriteErrorException\n", ""},
		{"an error ends its statement, and no other", "$a = 1; $a = 1 / 0; \"a $a\"; if (1 / 0) { 'no' } else { 'no' }; 'on'", "a 1\non\n", "by zero"},
		{"in a loop", "foreach ($i in 1, 0, 2) { 4 / $i; 'on' }", "4\non\non\n2\non\n", "by zero"},
		{"in a try around a block", "try { & { 1 / 0; 'no' } } catch { 'c' }", "c\n", ""},
		{"$? behind an error", "1 / 0; $?; $?; 1 / 0; $x = 5; $?; Set-Thing bad; $y = $?; $y; Set-Thing bad; if ($?) { } else { $? }",
			"False\nTrue\nTrue\nFalse\nFalse\n", "by zero"},
		{"$Error", "1 / 0; try { throw 'x' } catch { }; $Error.Count; \"$($Error[0])\"; $Error[1].InvocationInfo.ScriptLineNumber; $Error.Clear(); $Error.Count",
			"2\nx\n1\n0\n", "by zero"},
		{"SilentlyContinue keeps errors, Ignore does not", "Set-Thing bad -ea SilentlyContinue; Set-Thing bad -ea Ignore; $error.count", "1\n", ""},
		{"-ErrorVariable", "Set-Thing bad -ea SilentlyContinue -ErrorVariable e; Set-Thing bad -ea Ignore -ev +e; $e.Count; \"$($e[0])\"", "2\nno such thing\n", ""},
		{"a preference silences throw", "$ErrorActionPreference = 'SilentlyContinue'; throw 'x'; 'on'; $Error.Count", "on\n1\n", ""},
		{"but not to a catch", "$ErrorActionPreference = 'SilentlyContinue'; try { throw 'x' } catch { 'c' }", "c\n", ""},
		{"$_ is what it was behind catch", "5 | % { try { throw 'x' } catch { }; $_ }", "5\n", ""},
		{"a record is shown by its message", "try { throw 'x' } catch { $_ }", "x\n", ""},
		{"-is", "try { 1 / 0 } catch { $_.Exception.InnerException -is [DivideByZeroException]; $_.Exception -is [TimeoutException] }", "True\nFalse\n", ""},
		{"in a block of a command", "1, 0 | % { try { 2 / $_ } catch { 'c' } }", "2\nc\n", ""},
		{"results before the error", "$a = try { 1; throw 'x' } catch { 2 }; \"$a\"", "1 2\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if out != c.want || !strings.Contains(said, c.said) || c.said == "" && (said != "" || err != nil) {
				t.Errorf("%s\nprints %q, want %q\nsays %q, want %q\n%v", c.script, out, c.want, said, c.said, err)
			}
		})
	}
}

// TestUncaught: an error that nothing catches ends the script where it must, and is what Run returns.
func TestUncaught(t *testing.T) {
	for _, c := range []struct{ script, out, want string }{
		{"'a'; throw 'boom'; 'b'", "a\n", "line 1, column 6: boom"},
		{"foreach ($i in 1, 2) { $i; throw $i }; 'b'", "1\n", "1"},
		{"'a'; Set-Thing bad -ErrorAction Stop; 'b'", "a\n", "line 1, column 6: Set-Thing: no such thing"},
		{"$ErrorActionPreference = 'Stop'; 1 / 0; 'b'", "", "Attempted to divide by zero."},
		{"try { throw 'x' } catch { throw 'y' }; 'b'", "", "y"},
		{"try { throw 'x' } finally { throw 'y' }; 'b'", "", "y"},
		{"try { throw 'x' } catch [TimeoutException] { }; 'b'", "", "x"},
	} {
		out, _, err := play(t, &desk{}, c.script, Limits{})
		var run *RunError
		if out != c.out || !errors.As(err, &run) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %q %v, want %q", c.script, out, err, c.want)
		}
	}
}

// TestTrySyntax: what is wrong about a try is said with its place.
func TestTrySyntax(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"try { }", "line 1, column 8: try wants catch or finally behind its block, not the end of the script"},
		{"try { } 'x'", "try wants catch or finally"},
		{"try { } catch { } catch { }", "line 1, column 19: the catch before this one catches all"},
		{"try { } catch [No.Such] { }", "line 1, column 15: there are no exceptions of type [No.Such]; allowed: System.Exception, "},
		{"try { } catch [Exception], { }", "catch wants a type in brackets behind the comma"},
		{"try { } catch [Exception { }", "[ without ]"},
		{"try { } finally 5", "finally wants '{' here"},
		{"trap 5", "trap wants '{' here"},
		{"trap [TimeoutException], [Exception] { }", "trap takes one type of exceptions; write another trap for System.Exception"},
		{"trap [No.Such] { }", "there are no exceptions of type [No.Such]"},
		{"$ErrorActionPreference = 'Loud'", `$ErrorActionPreference cannot be "Loud"; allowed: Continue, Stop, SilentlyContinue, Ignore`},
	} {
		_, said, err := play(t, &desk{}, c.script, Limits{})
		if err == nil || !strings.Contains(said+err.Error(), c.want) {
			t.Errorf("%q: %q %v, want %q", c.script, said, err, c.want)
		}
	}
}

// TestFinally_Interrupted: finally runs when the script was interrupted, no longer than it may, and catch does not.
func TestFinally_Interrupted(t *testing.T) {
	for _, c := range []struct {
		script  string
		cleanup time.Duration
		want    string
	}{
		{"try { while (1) { 'x' } } catch { 'no' } finally { 'f' }; 'no'", time.Hour, "x\nx\nf\n"},
		{"try { while (1) { 'x' } } finally { 'f'; while (1) { } }; 'no'", time.Millisecond, ""},
	} {
		s, err := Parse(c.script)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		out := &canceller{after: 2, cancel: cancel}
		err = New(Config{Host: &desk{}, Out: out, Err: io.Discard, Limits: Limits{Cleanup: c.cleanup, Steps: math.MaxInt}}).Run(ctx, s)
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) || c.want != "" && out.String() != c.want {
			t.Errorf("%s: %q %v", c.script, out.String(), err)
		}
	}
}

// TestFinally_Limit: what a limit has ended is not caught, and finally does not run behind it.
func TestFinally_Limit(t *testing.T) {
	out, _, err := play(t, &desk{}, "try { while (1) { } } catch { 'c' } finally { 'f' }", Limits{Steps: 1000})
	var limit *LimitError
	if out != "" || !errors.As(err, &limit) {
		t.Errorf("%q %v", out, err)
	}
	if _, said, err := play(t, &desk{}, "while (1) { 1 / 0 }", Limits{Output: 1000}); !errors.As(err, &limit) || len(said) > 1000+200 {
		t.Errorf("%d bytes said, %v", len(said), err)
	}
}
