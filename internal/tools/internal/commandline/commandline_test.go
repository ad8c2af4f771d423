package commandline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// syntax returns the options of the tests in one of the styles.
func syntax(style string) *Syntax {
	s := &Syntax{Arguments: true}
	switch style {
	case "getopt":
		s.Getopt = true
		s.Options = []Option{
			{Names: []string{"-g", "--guid"}, Argument: "GUID"}, {Names: []string{"-o", "--once"}}, {Names: []string{"-v"}},
			{Names: []string{"-vf"}, Argument: "FLAGS"}, {Names: []string{"--lift"}, Argument: "N"}, {Names: []string{"-l", "--list"}},
			{Names: []string{"-A", "--ageing"}, Refused: "is not supported"},
		}
	case "slashes":
		s.Fold, s.Once = true, true
		s.Looks = func(w string) bool { return strings.HasPrefix(w, "/") && !strings.Contains(w[1:], "/") }
		s.Options = []Option{
			{Names: []string{"/v", "-v"}, Argument: "a name", Optional: true}, {Names: []string{"/ve", "-ve"}},
			{Names: []string{"/d", "-d"}, Argument: "data"}, {Names: []string{"--state"}, Argument: "a directory"},
		}
	case "open":
		s.Fold, s.Arguments = true, false
		s.Other = &Option{Argument: "a value", Optional: true}
		s.Options = []Option{{Names: []string{"--json", "-json"}}}
	}
	return s
}

func show(line Line) string {
	var words []string
	for _, g := range line.Given {
		w := g.Name
		if g.Has {
			w += "=" + g.Value
		}
		words = append(words, w)
	}
	return strings.Join(append(append(words, "|"), line.Arguments...), " ")
}

// Each style reads its words, and refuses the others with the option's name and what is allowed.
func TestParse_EachStyle(t *testing.T) {
	for _, c := range []struct{ style, line, want string }{
		{"getopt", "-g 1 -o a", "-g=1 -o | a"},
		{"getopt", "a -g1 b -ovg 2", "-g=1 -o -v -g=2 | a b"},
		{"getopt", "--guid=1 --guid 2 --gu=3 --o", "--guid=1 --guid=2 --guid=3 --once |"},
		{"getopt", "-vf 7 -vf=8 -vv", "-vf=7 -vf=8 -v -v |"},
		{"getopt", "-g -o", "-g=-o |"},
		{"getopt", "-o -- -g - --x", "-o | -g - --x"},
		{"getopt", "-", "| -"},
		{"slashes", "name /V x /VE", "/V=x /VE | name"},
		{"slashes", "/v /ve /etc/x", "/v /ve | /etc/x"},
		{"slashes", "/v", "/v |"},
		{"slashes", "-d /ve", "-d=/ve |"},
		{"slashes", "--STATE=x", "--STATE=x |"},
		{"open", "-Stat -Name x --JSON -y", "-Stat -Name=x --JSON -y |"},

		{"getopt", "-g", "option -g needs GUID"},
		{"getopt", "-og", "option -g needs GUID"},
		{"getopt", "-x", "unknown option -x; allowed: -g, --guid, -o"},
		{"getopt", "-ox", "unknown option -x"},
		{"getopt", "--fast=1", "unknown option --fast=1"},
		{"getopt", "--once=1", "option --once takes no argument"},
		{"getopt", "--li", "option --li may be --lift or --list"},
		{"getopt", "-A", "option -A is not supported"},
		{"getopt", "--age=1", "option --ageing is not supported"},
		{"slashes", "/v x -V y", "option -V is given twice"},
		{"slashes", "/d", "option /d needs data"},
		{"slashes", "/x", "unknown option /x"},
		{"open", "-Stat x y", `unexpected argument "y"`},
	} {
		line, err := syntax(c.style).Parse(strings.Fields(c.line))
		got := strings.TrimSpace(show(line))
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %q: %s, want %s", c.style, c.line, got, c.want)
		}
	}
}

// An error of Set is wrong usage that names the option and the value; what Set says remains in it. A usage error of Set
// stands by itself. What Set stops ends the reading.
func TestParse_ErrorsOfSet(t *testing.T) {
	low, own := errors.New("allowed: 1 to 4"), tool.Usagef("the port is 0")
	calls := 0
	s := Syntax{Getopt: true, Options: []Option{
		{Names: []string{"-n"}, Argument: "N", Set: func(string) error { calls++; return low }},
		{Names: []string{"-p"}, Argument: "P", Set: func(string) error { return own }},
	}}
	_, err := s.Parse([]string{"-n", "7", "-n", "8"})
	var usage *tool.UsageError
	if !errors.As(err, &usage) || usage.Text != `option -n is "7"; allowed: 1 to 4` || !errors.Is(err, low) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if _, err := s.Parse([]string{"-p", "0"}); err != own {
		t.Errorf("%v, want %v", err, own)
	}
}

// property: whatever options are given in whatever of their spellings, the parser returns them with their values, in
// order, and the other words.
func TestParse_ReturnsWhatWasWritten(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := randomSyntax(r)
		var words, want, rest []string
		for range r.IntN(8) {
			if r.IntN(4) == 0 {
				w := fmt.Sprint("word", r.IntN(100))
				words, rest = append(words, w), append(rest, w)
				continue
			}
			o := &s.Options[r.IntN(len(s.Options))]
			w, given := written(r, s, o)
			words, want = append(words, w...), append(want, given)
		}
		line, err := s.Parse(words)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, words, err)
		}
		if got, want := show(line), strings.Join(append(append(want, "|"), rest...), " "); got != want {
			t.Fatalf("seed %d: %q is read as %s, want %s", seed, words, got, want)
		}
	}
}

// randomSyntax returns options with letters and long names of which none begins like another.
func randomSyntax(r *rand.Rand) *Syntax {
	s := &Syntax{Arguments: true, Getopt: r.IntN(2) == 0}
	for i := range 1 + r.IntN(8) {
		letter := string(rune('a' + i))
		o := Option{Names: []string{"--" + letter + "-long", "-" + letter}}
		if r.IntN(2) == 0 {
			o.Argument = "value"
		}
		s.Options = append(s.Options, o)
	}
	return s
}

// written returns words that give o, and how show shows it.
func written(r *rand.Rand, s *Syntax, o *Option) (words []string, shown string) {
	name := o.Names[r.IntN(2)]
	long := strings.HasPrefix(name, "--")
	shown, spelled := name, name
	if long && s.Getopt {
		spelled = name[:3+r.IntN(len(name)-2)]
	}
	if o.Argument == "" {
		return []string{spelled}, shown
	}
	value := []string{"1", "-x", "a=b", "--", "/v", "word"}[r.IntN(6)]
	shown += "=" + value
	switch {
	case long && r.IntN(2) == 0:
		return []string{spelled + "=" + value}, shown
	case !long && s.Getopt && r.IntN(2) == 0:
		return []string{spelled + value}, shown
	}
	return []string{spelled, value}, shown
}

// Whatever the words are, they are read or refused as wrong usage in a text that quotes the word at fault, and no word is
// lost: each is an option, in one, its value or an argument.
func FuzzParse(f *testing.F) {
	for _, style := range []string{"getopt", "slashes", "open"} {
		for _, line := range []string{
			"-g 1 -ov a", "--guid=1 --gu 2 -- x", "/v x /ve /d", "-A", "-vf=", "--li", "--", "-", "–x y", "/ \xff =", "--=",
		} {
			f.Add(style, strings.ReplaceAll(line, " ", "\x00"))
		}
	}
	f.Fuzz(func(t *testing.T, style, text string) {
		words := strings.Split(text, "\x00")
		s := syntax(style)
		line, err := s.Parse(words)
		if err != nil {
			var usage *tool.UsageError
			var wrong *Error
			if !errors.As(err, &usage) || !errors.As(err, &wrong) || usage.Text != err.Error() ||
				!strings.Contains(err.Error(), ";") && wrong.Kind != Refused {
				t.Fatalf("%s %q: %v", style, words, err)
			}
			return
		}
		for _, a := range line.Arguments {
			if !slices.Contains(words, a) {
				t.Fatalf("%s %q: argument %q", style, words, a)
			}
		}
		for _, g := range line.Given {
			if g.Option.Argument == "" && g.Has || g.Option.Argument != "" && !g.Option.Optional && !g.Has {
				t.Fatalf("%s %q: %+v", style, words, g)
			}
			if g.Has && !slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, g.Value) }) {
				t.Fatalf("%s %q: value %q", style, words, g.Value)
			}
		}
		if len(line.Given)+len(line.Arguments) == 0 && !slices.Equal(words, []string{"--"}) {
			t.Fatalf("%s %q: nothing is read", style, words)
		}
	})
}
