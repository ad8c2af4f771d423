package manual

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

func text(p Page) string {
	var b strings.Builder
	_, _ = p.WriteTo(&b)
	return b.String()
}

// TestPage_Layout: each part is where man(7) wants it, and nothing of a text is taken for a request of roff.
func TestPage_Layout(t *testing.T) {
	got := text(Page{
		Name: "vpi-try", Summary: `try "it"`, Version: "1.2", Synopsis: []string{"vpi-try [-x] FILE"},
		Sections: []Section{
			{Title: "OPTIONS", Text: []string{"First.", ".hidden is a file.\nStill."}, Terms: []Term{{"-x", "'quoted' C:\\dir"}}},
			{Title: "EXAMPLE", Verbatim: "a\n\n\tb -c\n.d"},
		},
	})
	want := `.TH "VPI\-TRY" 1 "" "1.2" "SoftVPI"
.SH NAME
vpi\-try \- try "it"
.SH SYNOPSIS
.nf
vpi\-try [\-x] FILE
.fi
.SH "OPTIONS"
First.
.PP
\&.hidden is a file. Still.
.TP
\fB\-x\fR
\&'quoted' C:\edir
.SH "EXAMPLE"
.PP
.nf
a

        b \-c
\&.d
.fi
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPage_NoRequestFromText: whatever a text contains, the only requests of a page are its own.
func TestPage_NoRequestFromText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any := func(name string) string {
			return rapid.StringOf(rapid.RuneFrom([]rune(`.'\"- `+"ab\n\t"))).Draw(t, name)
		}
		got := text(Page{Name: any("name"), Summary: any("summary"), Synopsis: []string{any("synopsis")},
			Sections: []Section{{Title: any("title"), Text: []string{any("text")}, Terms: []Term{{any("term"), any("what")}}, Verbatim: any("verbatim")}}})
		for l := range strings.Lines(got) {
			switch request, _, _ := strings.Cut(strings.TrimSpace(l), " "); {
			case !strings.HasPrefix(l, ".") && !strings.HasPrefix(l, "'"):
			case strings.Contains(" .TH .SH .PP .TP .nf .fi ", " "+request+" "):
			default:
				t.Fatalf("%q is a request", l)
			}
		}
	})
}

// TestPage_Renders: groff takes a page without a warning, and shows what it says.
func TestPage_Renders(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "groff")
	c := exec.Command("groff", "-man", "-Tascii", "-ww")
	c.Stdin = strings.NewReader(text(Page{Name: "x", Summary: "y", Sections: []Section{{Title: "T", Text: []string{`.a 'b' "c" \d -e`}}}}))
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `.a 'b' "c" \d -e`) || strings.Contains(string(out), "warning") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestMarkdown_AsItIs: what the page says is shown as it is, whatever it means to Markdown.
func TestMarkdown_AsItIs(t *testing.T) {
	var b strings.Builder
	p := Page{Name: "a_b", Summary: "x <y> *z*", Synopsis: []string{"a_b [-c]"}, Sections: []Section{{Title: "OPTIONS",
		Text: []string{"one | two"}, Terms: []Term{{Name: "--x=A|B", Text: "some `thing`\nelse"}}, Verbatim: "line *1*\n  line 2\n"}}}
	if err := p.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	want := "# a\\_b\n\nx \\<y\\> \\*z\\*\n\n## SYNOPSIS\n\n    a_b [-c]\n\n## OPTIONS\n\none \\| two\n\n| | |\n|---|---|\n" +
		"| **\\-\\-x=A\\|B** | some \\`thing\\` else |\n\n    line *1*\n      line 2\n\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}
