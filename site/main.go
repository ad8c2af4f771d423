// Site makes web pages of the documents: of README.md, of what docs/SUMMARY.md lists, of manual pages and of the management
// interface's description. They need no server: a browser opens bin/site/index.html, and searches in it, from the disk.
//
// It is a module of its own, as it needs a parser of Markdown and nothing else in SoftVPI does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "`directory` of the sources")
	man := flag.String("man", "", "`directory` of manual pages in Markdown (softvpi man --markdown --directory DIR)")
	openapi := flag.String("openapi", "", "`file` with the description of the management interface")
	out := flag.String("out", "", "`directory` for the pages: new, or made by this program")
	flag.Parse()
	if err := run(os.Stdout, *root, *man, *openapi, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, root, man, openapi, out string) error {
	if out == "" {
		return fmt.Errorf("-out is missing: the directory for the pages")
	}
	s := newSite(os.DirFS(root))
	if man != "" {
		s.man = os.DirFS(man)
	}
	if openapi != "" {
		text, err := os.ReadFile(openapi)
		if err != nil {
			return err
		}
		s.openapi = text
	}
	files, err := s.build()
	if err != nil {
		return err
	}
	if err := check(files); err != nil {
		return err
	}
	if err := write(out, files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d files: %s\n", len(files), filepath.Join(out, "index.html"))
	return err
}

// marker is in directories that this program made, which it may therefore replace.
const marker = ".softvpi-site"

func write(out string, files map[string][]byte) error {
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, marker)); err != nil {
			return fmt.Errorf("%s has other files; allowed: a new directory, or one that this program made", out)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	for _, name := range append(sorted(files), marker) {
		to := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
