package powershell

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// given is an argument of a command whose value is known.
type given struct {
	parameter string // empty: a value
	colon     bool   // a value stands behind a colon
	value     any
	word      string // as written without quotes
}

// evaluate returns the arguments of a command with their values.
func (in *Interpreter) evaluate(list []argument) (out []given, err error) {
	for _, a := range list {
		switch {
		case a.splat != "":
			list, err := in.splatted(a)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		case a.parameter != "" && a.value == nil:
			out = append(out, given{parameter: a.parameter})
		default:
			v, err := in.expression(a.value)
			if err != nil {
				return nil, err
			}
			g := given{parameter: a.parameter, colon: a.parameter != "", value: v}
			if l, ok := a.value.(*literal); ok {
				g.word = l.word
			}
			if l, ok := a.value.(*array); ok {
				g.value = words(l, v.([]any))
			}
			out = append(out, g)
		}
	}
	return out, nil
}

// splatted are the arguments of @name: those of a hash table by their names, those of a list by their positions (about_Splatting).
func (in *Interpreter) splatted(a argument) (out []given, err error) {
	switch v := in.get(strings.ToLower(a.splat)).(type) {
	case *Table:
		for _, p := range v.properties {
			out = append(out, given{parameter: p.Name, colon: true, value: p.Value})
		}
		return out, nil
	case []any:
		for _, x := range v {
			out = append(out, given{value: x})
		}
		return out, nil
	}
	return nil, in.wrong(a, fmt.Errorf("@%s is neither a hash table of parameters nor a list of values", a.splat))
}

// words gives numbers in a list of words the text as written: 0001 is not 1 where text is wanted.
func words(l *array, values []any) []any {
	for i, x := range l.items {
		if lit, ok := x.(*literal); ok && lit.word != "" {
			values[i] = word{values[i], lit.word}
		}
	}
	return values
}

// word is a value with its text as written.
type word struct {
	value any
	text  string
}

func plain(v any) any {
	if w, ok := v.(word); ok {
		return w.value
	}
	return v
}

// bound are the parameters of a call by their names.
type bound map[string]any

// bind gives the arguments of a command to its parameters (about_Parameters, about_Parameter_Sets).
func (in *Interpreter) bind(c *Cmdlet, list []given) (bound, error) {
	list, err := in.mended(c, list)
	if err != nil {
		return nil, err
	}
	b, values, err := bindNames(c, list)
	if err != nil {
		return nil, err
	}
	if err := bindPositions(c, b, values); err != nil {
		return nil, err
	}
	return b, c.oneSet(b)
}

// bindNames gives arguments to the parameters that they name. Values are left, and of a bare command the names of none of its parameters.
func bindNames(c *Cmdlet, list []given) (b bound, values []given, err error) {
	b = bound{}
	for i := 0; i < len(list); i++ {
		g := list[i]
		if g.parameter == "" {
			values = append(values, g)
			continue
		}
		p, err := c.named(g.parameter)
		var unknown *ParameterError
		if c.bare && errors.As(err, &unknown) {
			values = append(values, g)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if _, twice := b[p.Name]; twice {
			return nil, nil, fmt.Errorf("parameter -%s stands twice", p.Name)
		}
		switch {
		case g.colon:
		case p.Kind == Switch:
			g.value = true
		case i+1 < len(list) && list[i+1].parameter == "":
			i++
			g.value, g.word = list[i].value, list[i].word
		default:
			return nil, nil, &ParameterError{"-" + p.Name + " has no value", "", p.allowed()}
		}
		v, err := p.convert(g.value, g.word)
		if err != nil {
			return nil, nil, err
		}
		b[p.Name] = v
	}
	return b, values, nil
}

// mended repairs what printed pages do to command lines, and says so: a blank behind a hyphen, one in a name at the end of a line,
// or none before a number.
func (in *Interpreter) mended(c *Cmdlet, list []given) ([]given, error) {
	var out []given
	for i := 0; i < len(list); i++ {
		g := list[i]
		if g.word != "" && len(g.word) < 4 && strings.Trim(g.word, "-–—") == "" && i+1 < len(list) && list[i+1].word != "" {
			if _, err := c.named(list[i+1].word); err == nil {
				in.warn("- %s is taken for -%s", list[i+1].word, list[i+1].word)
				out = append(out, given{parameter: list[i+1].word})
				i++
				continue
			}
		}
		if g.parameter == "" {
			out = append(out, g)
			continue
		}
		if _, err := c.named(g.parameter); err == nil {
			out = append(out, g)
			continue
		}
		name := strings.ReplaceAll(g.parameter, "-", "")
		digits := strings.TrimLeft(name[len(strings.TrimRight(name, "0123456789")):], "")
		if p, err := c.named(name); err == nil && name != g.parameter {
			in.warn("-%s is taken for -%s", g.parameter, p.Name)
			g.parameter = name
			out = append(out, g)
			continue
		}
		if base := strings.TrimSuffix(name, digits); digits != "" && base != "" {
			if p, err := c.named(base); err == nil && p.Kind != Switch {
				in.warn("-%s is taken for -%s %s", g.parameter, p.Name, digits)
				n, _ := strconv.ParseInt(digits, 10, 64)
				out = append(out, given{parameter: base, colon: true, value: n, word: digits})
				continue
			}
		}
		if p, word := c.withWord(name); p != nil {
			in.warn("-%s is taken for -%s %s", g.parameter, p.Name, word)
			out = append(out, given{parameter: p.Name, colon: true, value: word})
			continue
		}
		_, err := c.named(g.parameter)
		return nil, err
	}
	return out, nil
}

// withWord returns the parameter of whose name, and of one of whose words, a name consists: -AlgorithmETS.
func (c *Cmdlet) withWord(name string) (*Param, string) {
	for i := range c.Params {
		for _, w := range c.Params[i].Allowed {
			if strings.EqualFold(name, c.Params[i].Name+w) {
				return &c.Params[i], w
			}
		}
	}
	return nil, ""
}

// bindPositions gives values without names to the parameters that have positions, in their order.
func bindPositions(c *Cmdlet, b bound, values []given) error {
	var open []Param
	for _, p := range c.Params {
		if _, done := b[p.Name]; !done && p.Position > 0 && c.fits(b, p) {
			open = append(open, p)
		}
	}
	slices.SortStableFunc(open, func(a, b Param) int { return a.Position - b.Position })
	for i, g := range values {
		if len(open) == 0 {
			if rest := slices.IndexFunc(c.Params, func(p Param) bool { return p.Rest }); rest >= 0 {
				return bindRest(c.Params[rest], b, values[i:])
			}
			return fmt.Errorf("no parameter takes %q; allowed: %s", Text(unwords(g.value)), c.names())
		}
		p := open[0]
		v, err := p.convert(g.value, g.word)
		if err != nil {
			return err
		}
		b[p.Name] = v
		open = slices.DeleteFunc(open[1:], func(q Param) bool { return !c.fits(b, q) || q.Position == p.Position })
	}
	return nil
}

func bindRest(p Param, b bound, values []given) error {
	list := []any{}
	for _, g := range values {
		list = append(list, List(unwords(g.value))...)
	}
	v, err := p.convert(list, "")
	b[p.Name] = v
	return err
}

func unwords(v any) any {
	list, ok := v.([]any)
	if !ok {
		return plain(v)
	}
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = unwords(x)
	}
	return out
}

// fits reports whether a parameter's set is that of the parameters that are bound.
func (c *Cmdlet) fits(b bound, p Param) bool {
	set := c.set(b)
	return p.Set == "" || set == "" || p.Set == set
}

// set is the parameter set that is chosen; empty: none yet.
func (c *Cmdlet) set(b bound) string {
	for _, p := range c.Params {
		if _, ok := b[p.Name]; ok && p.Set != "" {
			return p.Set
		}
	}
	return c.defaultSet
}

// oneSet refuses parameters of different sets.
func (c *Cmdlet) oneSet(b bound) error {
	var first *Param
	for i, p := range c.Params {
		if _, ok := b[p.Name]; !ok || p.Set == "" {
			continue
		}
		if first != nil && first.Set != p.Set {
			return fmt.Errorf("-%s and -%s exclude each other", first.Name, p.Name)
		}
		if first == nil {
			first = &c.Params[i]
		}
	}
	return nil
}

// complete refuses a call without the parameters that it must have.
func (c *Cmdlet) complete(b bound) error {
	for _, p := range c.Params {
		if _, ok := b[p.Name]; !ok && p.Mandatory && c.fits(b, p) {
			return &ParameterError{"-" + p.Name + " is missing", "", p.allowed()}
		}
	}
	return nil
}

// fromPipe adds to the parameters of a call what an object from the pipe says.
func (c *Cmdlet) fromPipe(b bound, input any) error {
	taken := false
	for _, p := range c.Params {
		if _, done := b[p.Name]; done || !p.Piped || !c.fits(b, p) {
			continue
		}
		v, ok := pipedValue(p, input)
		if !ok {
			continue
		}
		x, err := p.convert(v, "")
		if err != nil {
			return err
		}
		b[p.Name], taken = x, true
	}
	switch {
	case taken:
		return nil
	case !slices.ContainsFunc(c.Params, func(p Param) bool { return p.Piped }):
		return errors.New("takes nothing from a pipe")
	}
	// Without it the command might concern everything that there is.
	return fmt.Errorf("takes nothing of a value of %s from the pipe", typeName(input))
}

func pipedValue(p Param, input any) (any, bool) {
	if p.Kind == Any {
		return input, true
	}
	o, ok := input.(*Object)
	if !ok {
		_, isText := input.(string)
		return input, isText && (p.Kind == String || p.Kind == Strings)
	}
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		if v, ok := o.Get(name); ok && v != nil {
			return v, true
		}
	}
	return nil, false
}
