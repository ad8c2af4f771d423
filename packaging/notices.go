package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// sources is where the Go command keeps what programs were built of.
type sources struct {
	modules string // GOMODCACHE
	root    string // GOROOT, for the standard library
}

// noticeNames are what files with a licence, or a notice that has to go with a program, are called at the top of a module.
var noticeNames = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"}

// noticesOf returns the licences and notices of all parts of a bill: most of these licences want that whoever gets a program gets them.
func noticesOf(of *bill, from sources) (string, error) {
	var b strings.Builder
	b.WriteString("What the programs of SoftVPI contain of others, with the licences and notices of each.\n")
	for _, c := range of.Components {
		texts, err := from.notices(c.Name, c.Version)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", c.Name, c.Version, err)
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n\n%s", strings.Repeat("=", 78), c.Name, c.Version, strings.Join(texts, "\n"))
	}
	return b.String(), nil
}

// writeNotices writes the licences and notices of all parts of a bill into a file, packed.
func writeNotices(to string, of *bill, from sources) error {
	text, err := noticesOf(of, from)
	if err != nil {
		return err
	}
	packed, err := packedText(text)
	if err != nil {
		return err
	}
	return os.WriteFile(to, packed, 0o644)
}

// notices returns the texts of a module's licences and notices; a module without any is an error, since nothing allows it to be passed on.
func (s sources) notices(module, version string) (texts []string, err error) {
	dir := filepath.Join(s.modules, escaped(module)+"@"+escaped(version))
	if module == standardLibrary {
		dir = s.root
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		name, _, _ := strings.Cut(strings.ToUpper(f.Name()), ".")
		name, _, _ = strings.Cut(name, "-")
		if f.IsDir() || !slices.Contains(noticeNames, name) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.TrimRight(string(text), "\n")+"\n")
	}
	if len(texts) == 0 {
		return nil, errors.New("no licence in " + dir)
	}
	return texts, nil
}

// escaped returns a path or a version as it is in the module cache, where a capital letter is an exclamation mark and the small one
// (golang.org/ref/mod, "Module cache").
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
