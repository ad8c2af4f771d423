package powershell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// office is a desk with a program that complains, and ends with the status that its argument says.
type office struct{ *desk }

func (o office) Program(_ context.Context, name string, args []string, out, errs io.Writer) (status int, found bool) {
	if name != "ends" {
		return 0, false
	}
	fmt.Fprintln(out, "printed")
	fmt.Fprintln(errs, "complained")
	_, err := fmt.Sscan(strings.Join(args, " "), &status)
	return status, err == nil
}

// TestRedirections: what 1> and 2> name goes there and nowhere else; errors count wherever they go.
func TestRedirections(t *testing.T) {
	const bad, complaint = "Set-Thing bad", "line 1, column 1: Set-Thing: no such thing\n"
	for _, c := range []struct {
		name, script, out, said string
		files                   string
		failures                int
	}{
		{"errors are printed", bad, "", complaint, "", 1},
		{"errors to nowhere", bad + " 2>$null; $?; $Error.Count", "False\n1\n", "", "", 1},
		{"the digit is no argument", "Set-Thing x -Ids 1,2 2>$null; Set-Thing 2", "set x 0 False [1 2]\nset 2 0 False []\n", "", "", 0},
		{"a number is one", "Set-Thing x -PriorityValue8021Action 2 >$null; Set-Thing y 1>$null", "", "", "", 0},
		{"errors to a file", bad + " 2>e; 'o'", "o\n", "", "e=no such thing\n", 1},
		{"errors at the end of a file", "'first' > e; " + bad + " 2>>e", "", "", "e=first\nno such thing\n", 1},
		{"a file for each", "& { 'o'; " + bad + " } 2>e >o", "", "", "e=no such thing\no=o\n", 1},
		{"errors among results", "$x = & { 'o'; " + bad + " } 2>&1; $x.Count; \"$($x[1])\"", "2\nno such thing\n", "", "", 1},
		{"of one command of a pipe", "Get-Thing one 2>$null | Set-Thing 2>$null | % { \"<$_>\" }", "<set one 0 False []>\n", "", "", 0},
		{"results of the first to a file", "Get-Thing one | % Name > f | Measure-Object | % Count", "0\n", "", "f=one\n", 0},
		{"those of a function's commands", "function f { " + bad + "; 'o' }; f 2>$null", "o\n", "", "", 1},
		{"not beyond it", "& { " + bad + " } 2>$null; 1; " + bad, "1\n", strings.Replace(complaint, "column 1", "column 33", 1), "", 2},
		{"a program's", "ends 0 2>$null", "printed\n", "", "", 0},
		{"a program's among results", "(ends 0 2>&1) -join '+'", "printed+complained\n", "", "", 0},
		{"a program's to a file", "ends 0 2>e | Out-Null", "", "", "e=complained\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &desk{}
			out, said, failures := playIn(t, d, office{d}, c.script)
			var files strings.Builder
			for _, name := range []string{"e", "f", "o"} {
				if f, ok := d.files[name]; ok {
					fmt.Fprintf(&files, "%s=%s", name, f)
				}
			}
			if out != c.out || said != c.said || files.String() != c.files || failures != c.failures {
				t.Errorf("%s\nprints %q, says %q, files %q, %d failures;\nwant %q, %q, %q, %d", c.script, out, said, files.String(), failures,
					c.out, c.said, c.files, c.failures)
			}
		})
	}
	for script, want := range map[string]string{
		"Get-Thing 3>$null":       "3> is not in the part of PowerShell that is understood; allowed: >, 1>, 2> with > or >>, and 2>&1",
		"Get-Thing *>x":           "*> is not in the part",
		"Get-Thing 2>a 2>b":       "2> stands there twice",
		"Get-Thing > a >> b":      "1> stands there twice",
		"Get-Thing 2>&3":          ">& is understood as 2>&1 only",
		"Get-Thing 2>":            "> wants the name of a file here",
		"Get-Thing 2>$null -Name": "the statement should end here",
	} {
		if _, err := Parse(script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", script, err, want)
		}
	}
}

// TestStatusOfPrograms: a program's status is no error, whatever $ErrorActionPreference says, unless the variable of PowerShell 7.4 asks
// for it; it counts as a failure of the script in any case.
func TestStatusOfPrograms(t *testing.T) {
	const stop = "$ErrorActionPreference = 'Stop'; "
	for _, c := range []struct {
		name, script, out, said string
		failures                int
	}{
		{"goes on", stop + "ends 3; $LASTEXITCODE; $Error.Count", "printed\n3\n0\n", "complained\n", 1},
		{"says that it has failed", stop + "ends 3; $?", "printed\nFalse\n", "complained\n", 1},
		{"is caught by no catch", "try { ends 3; 'after' } catch { 'caught' }", "printed\nafter\n", "complained\n", 1},
		{"is an error if asked for", stop + "$PSNativeCommandUseErrorActionPreference = $true; try { ends 3 } catch { \"$_\" }",
			"printed\nexit status 3\n", "complained\n", 0},
		{"and none otherwise", stop + "$PSNativeCommandUseErrorActionPreference = $false; ends 3; 'after'", "printed\nafter\n", "complained\n", 1},
		{"a program that there is not is one", "try { nosuch 3 } catch { 'caught' }", "caught\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &desk{}
			out, said, failures := playIn(t, d, office{d}, c.script)
			if out != c.out || said != c.said || failures != c.failures {
				t.Errorf("%s\nprints %q, says %q, %d failures; want %q, %q, %d", c.script, out, said, failures, c.out, c.said, c.failures)
			}
		})
	}
}

// playIn runs a script that nothing ends.
func playIn(t *testing.T, d *desk, host Host, source string) (out, said string, failures int) {
	t.Helper()
	d.files = map[string]*bytes.Buffer{}
	s, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	var o, e strings.Builder
	in := New(Config{Host: host, Out: &o, Err: &e})
	if err := in.Run(t.Context(), s); err != nil {
		t.Errorf("%s: %v", source, err)
	}
	return o.String(), e.String(), in.Failures()
}
