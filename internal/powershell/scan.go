package powershell

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// end is what a parser sees behind the last character.
const end = rune(0)

// parser reads a script by recursive descent. It reads characters, not tokens, because what a character means depends on whether a
// command's arguments or an expression stand there (about_Parsing).
type parser struct {
	src   []rune
	lines []int // where lines begin
	at    int
	depth int
	alone bool // commas are not those of a list
	// sawArgs says that $args was read.
	sawArgs bool
	// classes are those that were read, types those that may be among them.
	classes map[string]*class
	types   []typeUsed
	// inMethod says that return is that of a method, returns that a type may be that of what a method returns.
	inMethod, returns bool
}

func (p *parser) peek() rune { return p.peekAt(0) }

func (p *parser) peekAt(n int) rune {
	if p.at+n < len(p.src) {
		return p.src[p.at+n]
	}
	return end
}

func (p *parser) position() Position { return p.positionAt(p.at) }

func (p *parser) positionAt(at int) Position {
	line, begins := slices.BinarySearch(p.lines, at)
	if !begins {
		line--
	}
	return Position{line + 1, at - p.lines[line] + 1}
}

// syntaxFault leaves the parser; Parse returns it.
type syntaxFault struct{ err *SyntaxError }

func (p *parser) failAt(at int, format string, args ...any) {
	panic(syntaxFault{&SyntaxError{p.positionAt(at), fmt.Sprintf(format, args...)}})
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.at, format, args...) }

// deepen counts nesting; call the result when it ends.
func (p *parser) deepen() func() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested deeper than is allowed: %d", maxNesting)
	}
	return func() { p.depth-- }
}

// dash reports whether a character is one of the dashes that PowerShell takes for a hyphen, as word processors write it.
func dash(r rune) bool { return r == '-' || r == '–' || r == '—' || r == '―' }

func singleQuote(r rune) bool { return strings.ContainsRune("'‘’‚‛", r) && r != end }

func doubleQuote(r rune) bool { return strings.ContainsRune("\"“”„", r) && r != end }

func blank(r rune) bool { return r != '\n' && r != end && unicode.IsSpace(r) || r == '\u00a0' }

func nameStart(r rune) bool { return unicode.IsLetter(r) || r == '_' }

func nameRune(r rune) bool { return nameStart(r) || unicode.IsDigit(r) }

// skipBlank skips blanks, comments and lines that a backtick continues.
func (p *parser) skipBlank() {
	for {
		switch r := p.peek(); {
		case blank(r):
			p.at++
		case r == '`' && p.continued() > 0:
			p.at += p.continued()
		case r == '<' && p.peekAt(1) == '#':
			p.skipBlockComment()
		case r == '#':
			for p.peek() != '\n' && p.at < len(p.src) {
				p.at++
			}
		default:
			return
		}
	}
}

// continued is how many characters a backtick and the end of the line, or of the script, have, 0 if something else follows it.
func (p *parser) continued() int {
	n := 1
	for blank(p.peekAt(n)) {
		n++
	}
	switch {
	case p.at+n >= len(p.src): // the last line goes on with nothing
		return n
	case p.peekAt(n) == '\n':
		return n + 1
	}
	return 0
}

func (p *parser) skipBlockComment() {
	start := p.at
	for p.at += 2; p.peek() != '#' || p.peekAt(1) != '>'; p.at++ {
		if p.at >= len(p.src) {
			p.failAt(start, "the comment <# has no #>")
		}
	}
	p.at += 2
}

// skipLines is skipBlank beyond the ends of lines.
func (p *parser) skipLines() {
	for p.skipBlank(); p.peek() == '\n' || p.peek() == ';'; p.skipBlank() {
		p.at++
	}
}

// skipNewlines is skipLines without semicolons.
func (p *parser) skipNewlines() {
	for p.skipBlank(); p.peek() == '\n'; p.skipBlank() {
		p.at++
	}
}

func (p *parser) expect(r rune, what string) {
	if p.peek() != r {
		p.fail("%s wants %q here, not %s", what, r, p.here())
	}
	p.at++
}

// here describes the next character for messages.
func (p *parser) here() string {
	switch r := p.peek(); {
	case p.at >= len(p.src):
		return "the end of the script"
	case r == '\n':
		return "the end of the line"
	default:
		return fmt.Sprintf("%q", r)
	}
}

// name reads letters, digits and underscores.
func (p *parser) name() string {
	start := p.at
	for nameRune(p.peek()) {
		p.at++
	}
	return string(p.src[start:p.at])
}

// keyword returns the word that stands here in lower case, without reading it.
func (p *parser) keyword() string {
	n := 0
	for unicode.IsLetter(p.peekAt(n)) {
		n++
	}
	if r := p.peekAt(n); nameRune(r) || dash(r) || r == '.' || r == '\\' || r == ':' {
		return ""
	}
	return strings.ToLower(string(p.src[p.at : p.at+n]))
}
