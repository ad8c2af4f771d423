package powershell

import (
	"fmt"
	"strings"
)

// allowed says what values a parameter takes.
func (p *Param) allowed() string {
	switch {
	case len(p.Allowed) > 0:
		return strings.Join(p.Allowed, ", ")
	case p.Max > 0:
		return fmt.Sprintf("%d to %d", p.Min, p.Max)
	}
	return p.Kind.String()
}

// convert returns a value in the form of the parameter's kind.
func (p *Param) convert(v any, written string) (any, error) {
	list, several := v.([]any)
	if v == nil && p.nullable {
		return nil, nil
	}
	if (v == nil || several && len(list) == 0) && p.Kind != Any && !p.nullable {
		// a variable that is not set would mean everything that there is
		return nil, &ParameterError{"-" + p.Name + " is nothing ($null)", "", p.allowed()}
	}
	if written != "" {
		v = word{v, written}
	}
	switch p.Kind {
	case Strings:
		out := []string{}
		for _, x := range List(v) {
			s, err := p.text(x)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	case Numbers:
		out := []int64{}
		for _, x := range List(v) {
			n, err := p.number(x)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
		return out, nil
	case Number:
		return p.number(v)
	case Bool, Switch:
		return p.truth(plain(v))
	case Code:
		b, ok := v.(*Block)
		if !ok {
			return nil, &ParameterError{"-" + p.Name, Text(unwords(v)), "a block in braces"}
		}
		return b, nil
	case Any:
		return unwords(v), nil
	}
	if list, ok := v.([]any); ok {
		return nil, &ParameterError{"-" + p.Name, Text(unwords(list)), "one value"}
	}
	return p.text(v)
}

func (p *Param) truth(v any) (bool, error) {
	switch x := v.(type) {
	case bool:
		return x, nil
	case int64, float64:
		return Truth(x), nil
	case string:
		for text, b := range map[string]bool{"true": true, "$true": true, "1": true, "false": false, "$false": false, "0": false} {
			if strings.EqualFold(x, text) {
				return b, nil
			}
		}
	}
	return false, &ParameterError{"-" + p.Name, Text(v), "$true, $false, 1, 0"}
}

func (p *Param) text(v any) (string, error) {
	s := Text(plain(v))
	if w, ok := v.(word); ok {
		s = w.text
	}
	if o, ok := v.(*Object); ok { // Get-NetAdapter's objects name adapters
		if n, has := o.Get("Name"); has {
			s = Text(n)
		}
	}
	if len(p.Allowed) == 0 {
		return s, nil
	}
	for _, a := range p.Allowed {
		if strings.EqualFold(a, s) {
			return a, nil
		}
	}
	return "", &ParameterError{"-" + p.Name, s, p.allowed()}
}

func (p *Param) number(v any) (int64, error) {
	v = plain(v)
	if s, ok := v.(string); ok {
		if strings.TrimSpace(s) == "" {
			return 0, &ParameterError{"-" + p.Name, s, p.allowed()}
		}
		for i, a := range p.Allowed {
			if strings.EqualFold(a, s) {
				return int64(i), nil
			}
		}
	}
	n, err := Integer(v)
	if err != nil || p.Max > 0 && (n < p.Min || n > p.Max) {
		return 0, &ParameterError{"-" + p.Name, Text(v), p.allowed()}
	}
	return n, nil
}
