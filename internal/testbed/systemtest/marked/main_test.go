package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func write(t *testing.T, source string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte("package x\n"+source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMarks_FindsTestsThatBeginWithAMark(t *testing.T) {
	dir := write(t, `
func TestOne(t *testing.T) { systemtest.Mark(t) }
func TestTwo(t *testing.T) {
	systemtest.Mark(t)
	two()
}
func TestPure(t *testing.T) { two() }
func TestEmpty(t *testing.T) {}
func helper(t *testing.T) { systemtest.Required(t) }
func (x) TestMethod() {}
func TestSelfish(t *testing.T) { systemtest.Mark(t, systemtest.Alone) }
`)
	got, err := marks(dir, []string{"x_test.go"})
	if want := (marked{[]string{"TestOne", "TestTwo", "TestSelfish"}, []string{"TestSelfish"}, 5}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// A mark that is not where it is looked for would take its test out of both divisions.
func TestMarks_RefusesAMarkElsewhere(t *testing.T) {
	for name, source := range map[string]string{
		"second":    "func TestX(t *testing.T) {\n\tx()\n\tsystemtest.Mark(t)\n}\n",
		"subtest":   "func TestX(t *testing.T) { t.Run(``, func(t *testing.T) { systemtest.Mark(t) }) }\n",
		"helper":    "func helper(t *testing.T) { systemtest.Mark(t) }\n",
		"method":    "func (x) TestX(t *testing.T) { systemtest.Mark(t) }\n",
		"variable":  "var f = func(t *testing.T) { systemtest.Mark(t) }\n",
		"reference": "var f = systemtest.Mark\n",
	} {
		_, err := marks(write(t, source), []string{"x_test.go"})
		if err == nil || !strings.Contains(err.Error(), "x_test.go:") || !strings.Contains(err.Error(), "first statement") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestArgs_NameTheTestsOfAPackage(t *testing.T) {
	flags := []string{"-count=1"}
	for want, s := range map[string]suite{
		"test -count=1 m/test/x":                 {Package: "m/test/x"},
		"test -count=1 -skip ^(TestA)$ m/test/x": {Package: "m/test/x", Not: []string{"TestA"}},
		"test -count=1 -run ^(TestA|TestB)$ m":   {Package: "m", Tests: []string{"TestA", "TestB"}},
	} {
		if got := strings.Join(s.args(flags), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
