package powershell

import (
	"errors"
	"strings"
)

// redirects are those of one element of a pipeline (about_Redirection): of results, and of errors and what programs print as such.
type redirects struct {
	results, errors *target
	merged          bool // errors go where results go: 2>&1
}

// target is the file behind > or >>; $null is none.
type target struct {
	append bool
	file   expression
}

// redirectionHere reports whether a redirection stands here: >, or a stream's number, or *, before it.
func (p *parser) redirectionHere() bool {
	return p.peek() == '>' || p.streamHere()
}

func (p *parser) streamHere() bool {
	return strings.ContainsRune("123456*", p.peek()) && p.peek() != end && p.peekAt(1) == '>'
}

// redirections reads what stands behind an element.
func (p *parser) redirections() (r redirects) {
	for p.skipBlank(); p.redirectionHere(); p.skipBlank() {
		stream := '1'
		if p.streamHere() {
			stream = p.peek()
		}
		switch {
		case stream != '1' && stream != '2':
			p.fail("%c> is not in the part of PowerShell that is understood; allowed: >, 1>, 2> with > or >>, and 2>&1", stream)
		case stream == '1' && r.results != nil || stream == '2' && (r.errors != nil || r.merged):
			p.fail("%c> stands there twice", stream)
		}
		if p.peek() != '>' {
			p.at++
		}
		if p.at++; p.peek() == '&' {
			if stream != '2' || p.peekAt(1) != '1' {
				p.fail(">& is understood as 2>&1 only")
			}
			p.at += len("&1")
			r.merged = true
			continue
		}
		t := p.target()
		if stream == '1' {
			r.results = t
		} else {
			r.errors = t
		}
	}
	return r
}

// target reads the file behind the first >.
func (p *parser) target() *target {
	t := &target{}
	if p.peek() == '>' {
		p.at++
		t.append = true
	}
	p.skipBlank()
	if p.ends() {
		p.fail("> wants the name of a file here")
	}
	t.file = p.argumentValue()
	return t
}

// redirected runs an element of a pipeline with its redirections. Files are written when it has ended.
func (in *Interpreter) redirected(r *redirects, e element, input []any, piped bool, out emit) (err error) {
	if *r == (redirects{}) {
		return in.element(e, input, piped, out)
	}
	var results, complaints []any
	if r.results != nil {
		out = in.gathering(&results)
	}
	was := in.complaints
	switch {
	case r.merged:
		in.complaints = out
	case r.errors != nil:
		in.complaints = in.gathering(&complaints)
	}
	err = in.element(e, input, piped, out)
	in.complaints = was
	return errors.Join(err, in.writeTo(e, r.results, results), in.writeTo(e, r.errors, complaints))
}

func (in *Interpreter) gathering(list *[]any) emit {
	return func(v any) error {
		*list = append(*list, v)
		return in.spend(valueBytes)
	}
}

// writeTo writes what was redirected to a file.
func (in *Interpreter) writeTo(at element, t *target, values []any) error {
	if t == nil {
		return nil
	}
	name, err := in.expression(t.file)
	if err != nil || name == nil { // $null
		return err
	}
	return in.wrongIf(at, in.writeFile(Text(name), values, t.append))
}

func (in *Interpreter) writeFile(name string, values []any, add bool) (err error) {
	f, err := in.cfg.Host.Create(name, add)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := printer{out: &limitedWriter{f, in.out.left, in.limits.Output}}
	for _, v := range values {
		if err := p.print(v); err != nil {
			return err
		}
	}
	return p.flush()
}
