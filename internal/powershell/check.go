package powershell

import (
	"fmt"
	"slices"
	"strings"
)

// zeroed are the types whose parameters are not nothing if nothing is given.
var zeroed = []string{"string", "bool", "boolean", "switch", "switchparameter", "int", "int32", "int64", "long", "uint32", "uint64", "byte",
	"uint16", "int16", "uint8", "sbyte", "double", "float", "single", "decimal"}

// convertTo converts a value to a type; empty: none.
func (in *Interpreter) convertTo(kind string, v any) (any, error) {
	switch list := v.(type) {
	case []string:
		out := make([]any, len(list))
		for i, s := range list {
			out[i] = s
		}
		v = out
	}
	if kind == "" {
		return v, nil
	}
	return in.convert(kind, v)
}

// checked returns a value of a parameter in its type, if the attributes of the parameter allow it.
func (v *parameter) checked(in *Interpreter, x any) (any, error) {
	value, err := in.convertTo(v.kind, x)
	if err != nil {
		return nil, &ParameterError{"-" + v.Name, Text(unwords(x)), "[" + v.kind + "]"}
	}
	if v.Mandatory && v.Kind != Switch {
		if err := v.something(value); err != nil {
			return nil, err
		}
	}
	for _, c := range v.checks {
		if err := c.holds(in, v, value); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// something refuses nothing and what is empty, which parameters that must be given have only if they say so.
func (v *parameter) something(value any) error {
	allows := func(name string) bool {
		return slices.ContainsFunc(v.checks, func(c check) bool { return c.name == name })
	}
	list, several := value.([]any)
	switch {
	case value == nil && !allows("allownull"):
		return &ParameterError{"-" + v.Name + " is nothing ($null)", "", "a value"}
	case value == "" && !allows("allowemptystring"):
		return &ParameterError{"-" + v.Name + " is empty", "", "text that is not empty"}
	case several && len(list) == 0 && !allows("allowemptycollection"):
		return &ParameterError{"-" + v.Name + " is an empty list", "", "one value or more"}
	}
	return nil
}

// holds returns an error that says what is allowed, if a value is not.
func (c check) holds(in *Interpreter, v *parameter, value any) error {
	refuse := func(x any, allowed string) error { return &ParameterError{"-" + v.Name, Text(x), allowed} }
	list, several := value.([]any)
	switch c.name {
	case "validatenotnull", "validatenotnullorempty":
		if value == nil || c.name == "validatenotnullorempty" && (value == "" || several && len(list) == 0) {
			return &ParameterError{"-" + v.Name + " is nothing", "", "a value"}
		}
		return nil
	case "validatecount":
		least, most, _ := c.limits()
		if n := int64(len(List(value))); n < least || n > most {
			return refuse(value, fmt.Sprintf("%d to %d values", least, most))
		}
		return nil
	}
	for _, x := range List(value) {
		if allowed, err := c.allows(in, x); err != nil || allowed != "" {
			if err == nil {
				err = refuse(x, allowed)
			}
			return err
		}
	}
	return nil
}

func (c check) limits() (least, most int64, err error) {
	if least, err = Integer(c.args[0]); err != nil {
		return 0, 0, err
	}
	most, err = Integer(c.args[1])
	return least, most, err
}

// allows returns what is allowed, if a value is not; empty: it is.
func (c check) allows(in *Interpreter, x any) (string, error) {
	switch c.name {
	case "validateset":
		if within(c.args, x, false) {
			return "", nil
		}
		words := make([]string, len(c.args))
		for i, a := range c.args {
			words[i] = Text(a)
		}
		return strings.Join(words, ", "), nil
	case "validaterange":
		low, err := compare(x, c.args[0], false)
		high, err2 := compare(x, c.args[1], false)
		if err != nil || err2 != nil || low < 0 || high > 0 {
			return Text(c.args[0]) + " to " + Text(c.args[1]), nil
		}
	case "validatelength":
		least, most, _ := c.limits()
		if n := int64(len([]rune(Text(x)))); n < least || n > most {
			return fmt.Sprintf("%d to %d characters", least, most), nil
		}
	case "validatepattern":
		re, err := regular(Text(c.args[0]), false)
		if err == nil && !re.MatchString(Text(x)) {
			return "what matches " + Text(c.args[0]), nil
		}
	case "validatescript":
		list, err := in.collect(func(out emit) error { return in.run(c.args[0].(*Block), x, out) })
		if err == nil && !Truth(unwrap(list)) {
			return "what the block of ValidateScript says", nil
		}
		return "", err
	}
	return "", nil
}
