package manual

import (
	"flag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOptions: an option has its value and its default, unless that is none, or depends on who runs the program.
func TestOptions(t *testing.T) {
	f := flag.NewFlagSet("program", flag.ContinueOnError)
	f.String("socket", "/run/user/7/s", "`path` of the socket")
	f.String("node", "n1", "`name` of this node")
	f.String("file", "", "a `file`")
	f.Bool("man", false, "print the page")
	f.Duration("interval", 2*time.Second, "`time` between two looks")
	want := []Term{{Name: "-file file", Text: "a file"}, {Name: "-interval time", Text: "time between two looks (default: 2s)"},
		{Name: "-man", Text: "print the page"}, {Name: "-node name", Text: "name of this node"},
		{Name: "-socket path", Text: "path of the socket (default: the user's)"}}
	if d := cmp.Diff(want, Options(f, map[string]string{"socket": "the user's", "node": ""})); d != "" {
		t.Error(d)
	}
}
