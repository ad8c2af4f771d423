// Package commandline reads command lines whose style the programs that a tool stands in for have set: getopt_long with
// its combined letters and abbreviations, long names behind one dash, slashes, any letter case. An option says how it is
// spelled, and a Syntax what else words may be; one parser reads them all.
package commandline

import (
	"errors"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Option is one option.
type Option struct {
	// Names are its spellings, each with what stands before it: "--guid", "-g", "-vf", "/reg:32". Of two options with
	// one spelling the first has it.
	Names    []string
	Argument string // what its value is, in texts; empty: it has none
	Optional bool   // it may lack its value: the next word is its value unless that is an option
	Help     string // what it does, for the error if its value is missing
	// Refused says why the program does not have an option that others of its kind have; empty: it has it.
	Refused string
	// Set is called for each time that the option is given, in their order; nil: Line.Given is enough. Its error should
	// say what is allowed; a *tool.UsageError stands by itself.
	Set func(value string) error
}

// Syntax describes the words of a command line.
type Syntax struct {
	Options []Option
	// Getopt reads words as getopt_long(3) does: -xyz is -x -y -z, -t100 is -t 100, long names may be abbreviated as far
	// as they are unique, and -- ends the options.
	Getopt    bool
	Fold      bool // the letter case of names does not matter
	Once      bool // no option may be given twice
	Arguments bool // words that are no options are allowed
	// Looks reports whether a word that no option has for a name would be one, and is refused; nil: if it begins with a
	// dash that is not all of it.
	Looks func(word string) bool
	// Other takes the options of all other names; nil: they are refused.
	Other *Option
	// Hint ends the errors about words that are not expected; empty: they list the options.
	Hint string
}

// Given is an option as it was given.
type Given struct {
	Option *Option
	Name   string // as it was spelled; an abbreviation in full
	Value  string
	Has    bool // it was given a value
}

// Line is a command line that was read.
type Line struct {
	Given     []Given
	Arguments []string // the words that are no options
}

// Parse reads the words of a command line. Its errors are an *Error, which is a *tool.UsageError to errors.As, or come
// from Option.Set.
func (s *Syntax) Parse(words []string) (Line, error) {
	p := parser{Syntax: s, rest: words}
	for len(p.rest) > 0 {
		if s.Getopt && p.rest[0] == "--" {
			return p.line, p.arguments(p.rest[1:])
		}
		if err := p.word(p.take()); err != nil {
			return p.line, err
		}
	}
	return p.line, nil
}

// parser reads one command line.
type parser struct {
	*Syntax
	rest []string
	line Line
}

func (p *parser) take() string {
	word := p.rest[0]
	p.rest = p.rest[1:]
	return word
}

func (p *parser) word(word string) error {
	g, err := p.find(word)
	switch {
	case err != nil:
		return err
	case g.Option != nil:
		return p.option(g)
	case p.Getopt && len(word) > 1 && word[0] == '-' && word[1] != '-':
		return p.letters(word[1:])
	case p.looks(word):
		return p.unknown(word)
	}
	return p.arguments([]string{word})
}

func (p *parser) arguments(words []string) error {
	if !p.Arguments && len(words) > 0 {
		return &Error{Kind: Stray, Name: words[0], hint: p.hint()}
	}
	p.line.Arguments = append(p.line.Arguments, words...)
	return nil
}

// find returns the option that a whole word is; none for combined letters. The error is that it is ambiguous.
func (p *parser) find(word string) (Given, error) {
	if o := p.named(word); o != nil {
		return Given{Option: o, Name: word}, nil
	}
	name, value, has := strings.Cut(word, "=")
	long := strings.HasPrefix(name, "--")
	if has && (long || p.Getopt && len(name) > 2) {
		if o := p.named(name); o != nil {
			return Given{o, name, value, true}, nil
		}
	}
	if p.Getopt && long && len(name) > 2 {
		o, full, err := p.abbreviated(name)
		return Given{o, full, value, has}, err
	}
	if p.Other != nil && p.looks(word) {
		return Given{Option: p.Other, Name: word}, nil
	}
	return Given{}, nil
}

// named returns the option with that spelling.
func (p *parser) named(name string) *Option {
	for i := range p.Options {
		for _, n := range p.Options[i].Names {
			if n == name || p.Fold && strings.EqualFold(n, name) {
				return &p.Options[i]
			}
		}
	}
	return nil
}

// abbreviated returns the option whose long name alone begins like that, and that name.
func (p *parser) abbreviated(part string) (found *Option, name string, err error) {
	for i := range p.Options {
		for _, n := range p.Options[i].Names {
			switch {
			case !strings.HasPrefix(n, part) || n == name:
			case found != nil && found != &p.Options[i]:
				return nil, "", &Error{Kind: Ambiguous, Name: part, Value: name + " or " + n}
			default:
				found, name = &p.Options[i], n
			}
		}
	}
	return found, name, nil
}

// letters reads options of one letter in one word.
func (p *parser) letters(word string) error {
	for i := 0; i < len(word); i++ {
		g := Given{Name: "-" + word[i:i+1]}
		if g.Option = p.named(g.Name); g.Option == nil {
			return p.unknown(g.Name)
		}
		if rest := word[i+1:]; g.Option.Argument != "" && rest != "" {
			g.Value, g.Has = rest, true
			return p.option(g)
		}
		if err := p.option(g); err != nil {
			return err
		}
	}
	return nil
}

// option records an option, with the next word as its value if it needs one.
func (p *parser) option(g Given) error {
	o := g.Option
	wrong := func(k Kind) error { return &Error{Kind: k, Name: g.Name, Option: o, Value: g.Value} }
	switch {
	case o.Refused != "":
		return wrong(Refused)
	case p.Once && p.given(o):
		return wrong(Twice)
	case o.Argument == "" && g.Has:
		return wrong(Surplus)
	case o.Argument != "" && !g.Has:
		if g.Has = p.valueFollows(o); g.Has {
			g.Value = p.take()
		} else if !o.Optional {
			return wrong(Missing)
		}
	}
	p.line.Given = append(p.line.Given, g)
	if o.Set == nil {
		return nil
	}
	err := o.Set(g.Value)
	var usage *tool.UsageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	return &Error{Kind: Invalid, Name: g.Name, Option: o, Value: g.Value, Err: err}
}

func (p *parser) valueFollows(o *Option) bool {
	if len(p.rest) == 0 || !o.Optional {
		return len(p.rest) > 0
	}
	next, err := p.find(p.rest[0])
	return err == nil && next.Option == nil
}

func (p *parser) given(o *Option) bool {
	for i := range p.line.Given {
		if p.line.Given[i].Option == o {
			return true
		}
	}
	return false
}

func (p *parser) looks(word string) bool {
	if p.Looks != nil {
		return p.Looks(word)
	}
	return len(word) > 1 && word[0] == '-'
}

func (p *parser) unknown(name string) error { return &Error{Kind: Unknown, Name: name, hint: p.hint()} }

// hint returns what is allowed instead of a word that is not expected.
func (p *parser) hint() string {
	if p.Hint != "" {
		return p.Hint
	}
	var names []string
	seen := map[string]bool{}
	for i := range p.Options {
		for _, n := range p.Options[i].Names {
			if !seen[n] && p.Options[i].Refused == "" {
				seen[n] = true
				names = append(names, n)
			}
		}
	}
	return "allowed: " + strings.Join(names, ", ")
}
