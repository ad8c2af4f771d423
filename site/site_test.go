package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is a small project.
func tree(docs string) fstest.MapFS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"README.md":          file("# Top\n\nSee [a](docs/a.md#two-words) and [its own](#top).\n"),
		"docs/SUMMARY.md":    file("# Part\n\n- [A](a.md)\n- [B](b.md)\n"),
		"docs/a.md":          file("# A\n\n## Two `words`!\n\n" + docs + "\n"),
		"docs/b.md":          file("# B\n\n## Same\n\nfirst\n\n## Same\n\nsecond\n"),
		"examples/x/main.go": file("package main // ```\n"),
		"examples/x/run.sh":  file("echo '<b>'\n"),
	}
}

func made(t *testing.T, docs string) map[string][]byte {
	t.Helper()
	files, err := newSite(tree(docs)).build()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestLinks_LeadToPages: links to documents become links to their pages, and what else they name gets a page.
func TestLinks_LeadToPages(t *testing.T) {
	files := made(t, "[b](b.md#same-1), [top](../README.md), [code](../examples/x/main.go), [all](../examples/x), [out](https://example.org/x.md)")
	if err := check(files); err != nil {
		t.Error(err)
	}
	a := string(files["docs/a.html"])
	for _, want := range []string{`href="../docs/b.html#same-1"`, `href="../index.html"`, `href="../examples/x/main.go.html"`,
		`href="../examples/x/index.html"`, `href="https://example.org/x.md"`, `id="two-words"`, `aria-current="page">A<`} {
		if !strings.Contains(a, want) {
			t.Errorf("the page lacks %s:\n%s", want, a)
		}
	}
	if !strings.Contains(string(files["examples/x/main.go.html"]), "package main // ```") {
		t.Error("the page of a file does not show it")
	}
	if run := string(files["examples/x/run.sh.html"]); !strings.Contains(run, "&lt;b&gt;") {
		t.Errorf("the page of a file of a directory: %s", run)
	}
}

// TestCheck_BrokenLinks: a link to a heading, a file or a page that is not there is an error.
func TestCheck_BrokenLinks(t *testing.T) {
	if err := check(made(t, "[b](b.md#nothing)")); err == nil || !strings.Contains(err.Error(), "no such heading") {
		t.Errorf("a link to no heading: %v", err)
	}
	for _, docs := range []string{"[c](c.md)", "[c](../../etc/passwd)", "<b>bold</b> in HTML", "<div>\nblock\n</div>"} {
		if _, err := newSite(tree(docs)).build(); err == nil {
			t.Errorf("%q: no error", docs)
		}
	}
}

// TestContents: every document is listed once, in a part.
func TestContents(t *testing.T) {
	for text, want := range map[string]string{
		"- [A](a.md)\n":                         "in no part",
		"# P\n- [A](a.md)\n- [A again](a.md)\n": "twice",
		"# P\n- A\n":                            "allowed",
		"# P\n- [A](a.md)\n":                    "leaves out docs/b.md",
	} {
		fs := tree("")
		fs["docs/SUMMARY.md"] = &fstest.MapFile{Data: []byte(text)}
		if _, err := newSite(fs).build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

// TestReference: requests and types of an OpenAPI description are on the page, and linked.
func TestReference(t *testing.T) {
	page, err := reference([]byte(`{"paths": {"/x/{n}": {"get": {"summary": "Reads <x>", "parameters": [{"name": "n", "in": "path",
		"schema": {"type": "integer", "minimum": 1, "maximum": 4}}], "responses": {"200": {"content": {"application/json":
		{"schema": {"$ref": "#/components/schemas/XStatus"}}}}}}}}, "components": {"schemas": {"XStatus": {"type": "object",
		"required": ["a"], "properties": {"a": {"type": ["array", "null"], "items": {"type": "string", "enum": ["p", "q"]}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## `GET /x/{n}`", "Reads &lt;x>", "| `n` | path | integer, 1 to 4 |", "- 200: [XStatus](#xstatus)",
		"### XStatus", "| `a` | list of string: `p`, `q` | Always there. |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, wrong := range []string{"", "{}", "[]"} {
		if _, err := reference([]byte(wrong)); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

// TestWrite: only a directory of its own is replaced.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "site")
	for _, files := range []map[string][]byte{{"a/old.html": nil}, {"new.html": []byte("x")}} {
		if err := write(out, files); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "a/old.html")); !os.IsNotExist(err) {
		t.Errorf("an old page: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, map[string][]byte{"x": nil}); err == nil {
		t.Error("a directory with other files was taken")
	}
}

// TestDocuments: the pages of the documents are whole: links and anchors lead somewhere, nothing comes from elsewhere, and they are the
// same bytes each time.
func TestDocuments(t *testing.T) {
	build := func() map[string][]byte {
		s := newSite(os.DirFS(".."))
		s.man = fstest.MapFS{"softvpi.md": &fstest.MapFile{Data: []byte("# softvpi\n\nan adapter\n")}}
		files, err := s.build()
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	files := build()
	if err := check(files); err != nil {
		t.Error(err)
	}
	again := build()
	for name, text := range files {
		if !bytes.Equal(text, again[name]) {
			t.Errorf("%s differs from one build to the next", name)
		}
		for _, foreign := range []string{`<script src="http`, `<link rel="stylesheet" href="http`, "<img src=\"http", "@import"} {
			if strings.HasSuffix(name, ".html") && bytes.Contains(text, []byte(foreign)) {
				t.Errorf("%s loads something from elsewhere: %s", name, foreign)
			}
		}
	}
	for _, want := range []string{"index.html", "docs/spec/ipc.html", "docs/registry.html", "man/softvpi.html", "man/index.html", "search.html"} {
		if files[want] == nil {
			t.Errorf("there is no %s", want)
		}
	}
}

// TestSearch_Order: all words must be there; those in titles and whole words come first.
func TestSearch_Order(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node to run the script of the search")
	}
	index := `[["p.html","a","Other","Page","the ports of a link"],["p.html","b","Other","Page","a port, up"],
		["q.html","c","Port","Page","nothing"],["q.html","d","None","Page","of this"]]`
	script := `const s = require(process.argv[1]); const i = JSON.parse(process.argv[2]);
		console.log(JSON.stringify([["port"], ["PORT link"], ["zzz"], [" "]].map(q => s.find(i, q[0], 10).map(e => e[1]).join(""))))`
	path, err := filepath.Abs("assets/search.js")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, "-e", script, path, index).CombinedOutput()
	var got []string
	if err != nil || json.Unmarshal(out, &got) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := "cba|a||"; strings.Join(got, "|") != want {
		t.Errorf("found %q, want %q", strings.Join(got, "|"), want)
	}
}

// TestSearch_FromDisk: a browser without a server or a network finds a key of the registry, and shows a link to its section.
func TestSearch_FromDisk(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium to open the pages with")
	}
	if testing.Short() {
		t.Skip("a browser is not for -short")
	}
	files, err := newSite(os.DirFS("..")).build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(filepath.Join(dir, "site"), files); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--dump-dom", "file://"+filepath.Join(dir, "site", "search.html")+"?q=checkforhangcqmaxnoprogress").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !bytes.Contains(out, []byte(`<li><a href="docs/registry.html#`)) || !bytes.Contains(out, []byte("CheckForHangCQMaxNoProgress")) {
		_, main, _ := bytes.Cut(out, []byte("<main>"))
		t.Errorf("what was found: %s", main)
	}
}
