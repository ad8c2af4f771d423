// Command columns reports lines of Go files that are wider than 140 columns, tabs counting as four. A text or struct tag
// that is one long string may make its line longer: what is left without the strings has to fit.
//
//	columns FILE...
//
// It exits with 1 if there are such lines, and with 2 if a file cannot be read.
package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"unicode/utf8"
)

// most is how wide a line may be.
const most = 140

func main() {
	status := 0
	for _, name := range os.Args[1:] {
		source, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "columns:", err)
			os.Exit(2)
		}
		for _, line := range tooWide(source) {
			fmt.Printf("%s:%d: wider than %d columns\n", name, line, most)
			status = 1
		}
	}
	os.Exit(status)
}

// tooWide returns the numbers, from 1, of the lines that are too wide.
func tooWide(source []byte) (numbers []int) {
	var texts map[int]int
	for i, line := range strings.Split(string(source), "\n") {
		w := width(line)
		if w <= most {
			continue
		}
		if texts == nil {
			texts = textWidths(source)
		}
		if w-texts[i+1] > most {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// textWidths returns how many columns of each line are in strings.
func textWidths(source []byte) map[int]int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	widths := map[int]int{}
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return widths
		}
		if kind == token.STRING {
			for i, part := range strings.Split(text, "\n") {
				widths[file.Line(at)+i] += width(part)
			}
		}
	}
}

func width(text string) int { return utf8.RuneCountInString(text) + 3*strings.Count(text, "\t") }
