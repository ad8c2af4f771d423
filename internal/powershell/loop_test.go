package powershell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestLoops: each loop prints what PowerShell prints (about_For, about_While, about_Do, about_Break, about_Continue).
func TestLoops(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"for", "for ($i = 0; $i -lt 3; $i++) { $i }", "0\n1\n2\n"},
		{"for on lines", "for (\n  $i = 0\n  $i -lt 2\n  $i++\n)\n{ $i }", "0\n1\n"},
		{"for with lines behind semicolons", "for ($i = 0;\n $i -lt 2;\n $i++) { $i }", "0\n1\n"},
		{"for without parts", "$i = 0; for (;;) { if ($i -ge 2) { break }; $i; $i++ }", "0\n1\n"},
		{"for without a last part", "for ($i = 0; $i -lt 2) { $i; $i += 1 }", "0\n1\n"},
		{"parts of for return nothing", "for ('a'; $i -lt 1; 'b') { $i += 1; 'c' }", "c\n"},
		{"continue in for goes to the next turn", "for ($i = 0; $i -lt 4; $i++) { if ($i % 2) { continue }; $i }", "0\n2\n"},
		{"while", "while ($i -lt 2) { $i += 1; $i }", "1\n2\n"},
		{"while that never runs", "while ($false) { 'x' }; 'on'", "on\n"},
		{"do while runs once at least", "do { 'x' } while ($false)", "x\n"},
		{"do while", "do { $i += 1; $i } while ($i -lt 3)", "1\n2\n3\n"},
		{"do until", "do { $i += 1; $i }\nuntil ($i -ge 3)", "1\n2\n3\n"},
		{"continue in do asks the condition", "do { $i += 1; if ($i -eq 2) { continue }; $i } until ($i -ge 3)", "1\n3\n"},
		{"break in do", "do { 'x'; break; 'y' } while ($true); 'on'", "x\non\n"},
		{"break leaves the inner loop", "foreach ($i in 1, 2) { foreach ($j in 1, 2) { if ($j -eq 2) { break }; \"$i$j\" } }", "11\n21\n"},
		{"break with a label leaves the outer loop", ":outer foreach ($i in 1, 2) { while (1) { $i; break outer } }; 'on'", "1\non\n"},
		{"continue with a label", ":Outer for ($i = 0; $i -lt 2; $i++) { do { $i; continue OUTER } while (1) }", "0\n1\n"},
		{"a label in a variable", "$l = 'o'; :o while (1) { while (1) { break $l } }; 'on'", "on\n"},
		{"a label that no loop has ends the script", "while (1) { break none }; 'on'", ""},
		{"break in a block that a command runs", "foreach ($i in 1..3) { 5, 6 | ForEach-Object { if ($i -eq 2) { break }; $_ } }; 'on'", "5\n6\non\n"},
		{"results of a loop", "$a = for ($i = 1; $i -lt 4; $i++) { $i * $i }; $a.Count; $a[2]", "3\n9\n"},
		{"statements behind a block on one line", "function f { 'f' } f; if (1) { 'a' } else { } 'b'; while ($false) { } do { } while (0) 'c'; try { } finally { } f", "f\na\nb\nc\nf\n"},
		{"loops in a pipe's block", "1, 2 | % { for ($i = 0; $i -lt $_; $i++) { \"$_$i\" } }", "10\n20\n21\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, said, err := play(t, &desk{}, c.script, Limits{})
			if err != nil || out != c.want {
				t.Errorf("%s\nprints %q, want %q\nsays %s\n%v", c.script, out, c.want, said, err)
			}
		})
	}
}

// TestLoopSyntax: what is wrong about a loop is said with its place and what is allowed.
func TestLoopSyntax(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"for $i", "line 1, column 5: for wants '(' here"},
		{"for ($i = 0; $i -lt 3; $i++; 5) { }", "for wants ')' here, not ';'"},
		{"for (;;) 5", "for wants '{' here"},
		{"do { } ", "do wants while or until behind its block, not the end of the script"},
		{"do { } whilst (1)", "do wants while or until behind its block"},
		{"do 5 while (1)", "do wants '{' here"},
		{"until (1) { }", "until is not in the part"},
		{":x 5", "the label :x wants a loop behind it; allowed: for, foreach, while, do, switch"},
		{"while () { }", "a command or an expression is missing before ')'"},
	} {
		_, err := Parse(c.script)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.script, err, c.want)
		}
	}
}

// TestInterrupted: a loop that never ends ends with its context, at the next turn.
func TestInterrupted(t *testing.T) {
	for _, script := range []string{"while ($true) { 'x' }", "for (;;) { 'x' }", "do { 'x' } until ($false)", "do { 'x' } while ($true)",
		":a while (1) { while (1) { 'x'; continue a } }"} {
		s, err := Parse(script)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		in := New(Config{Host: &desk{}, Out: &canceller{after: 3, cancel: cancel}, Err: io.Discard})
		if err := in.Run(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// canceller keeps what is written, and ends a context at the n-th write.
type canceller struct {
	bytes.Buffer
	after  int
	cancel func()
}

func (c *canceller) Write(b []byte) (int, error) {
	if c.after--; c.after == 0 {
		c.cancel()
	}
	return c.Buffer.Write(b)
}

// TestSteps: a loop without an end has no more turns than the limit of steps.
func TestSteps(t *testing.T) {
	for _, script := range []string{"while ($true) { }", "for (;;) { }", "do { } while (1)", "do { } until (0)", ":a for (;;) { continue a }"} {
		_, _, err := play(t, &desk{}, script, Limits{Steps: 1000})
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Most != 1000 {
			t.Errorf("%s: %v", script, err)
		}
	}
}
