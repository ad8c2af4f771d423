package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// neededLibc returns the latest version of glibc's symbols that the C libraries among the files are linked against, such as 2.34; it is
// empty without any.
func neededLibc(list []entry) (string, error) {
	latest := ""
	for _, e := range list {
		if e.from == "" || !strings.HasPrefix(e.to, "lib/softvpi/lib") {
			continue
		}
		b, err := os.ReadFile(e.from)
		if err != nil {
			return "", err
		}
		if !bytes.HasPrefix(b, []byte(elf.ELFMAG)) {
			continue // a text for the linker needs nothing
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			return "", fmt.Errorf("%s: %w", e.from, err)
		}
		symbols, err := f.ImportedSymbols()
		if err != nil {
			return "", fmt.Errorf("%s: %w", e.from, err)
		}
		for _, s := range symbols {
			if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && later(v, latest) {
				latest = v
			}
		}
	}
	return latest, nil
}

// later compares versions of numbers with points. A word such as PRIVATE is none.
func later(v, than string) bool {
	a, ok := numbers(v)
	b, _ := numbers(than)
	if !ok {
		return false
	}
	for i, n := range a {
		if i >= len(b) || n > b[i] {
			return true
		}
		if n < b[i] {
			return false
		}
	}
	return false
}

func numbers(v string) (out []int, ok bool) {
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
