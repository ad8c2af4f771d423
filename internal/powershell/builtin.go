package powershell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// input is the parameter by which commands take objects.
var input = Param{Name: "InputObject", Kind: Any, Piped: true, Help: "The objects; usually they come through a pipe."}

// properties is the parameter of commands that choose properties.
func properties(help string) Param {
	return Param{Name: "Property", Kind: Any, Position: 1, Help: help}
}

// Builtin returns the commands of the language itself, which work on objects.
func Builtin() []*Cmdlet { return builtins }

var builtins []*Cmdlet

func init() {
	builtins = slices.Concat(objectCmdlets(), outputCmdlets())
	for _, c := range builtins {
		c.Module = "Microsoft.PowerShell.Utility"
	}
}

func builtin(name string) *Cmdlet {
	for _, c := range builtins {
		if c.Is(name) {
			return c
		}
	}
	return nil
}

// Is reports whether a name is the command's, in any letter case.
func (c *Cmdlet) Is(name string) bool {
	return strings.EqualFold(c.Name, name) || slices.ContainsFunc(c.Aliases, func(a string) bool { return strings.EqualFold(a, name) })
}

// comparators are the switches by which Where-Object compares a property: -eq and so on.
func comparators() (out []Param) {
	for _, op := range []string{"EQ", "NE", "GT", "GE", "LT", "LE", "Like", "NotLike", "Match", "NotMatch", "Contains", "NotContains", "In",
		"NotIn", "CEQ", "CNE", "CLike", "CMatch"} {
		out = append(out, Param{Name: op, Kind: Switch, Set: op, Help: "Compare the property with the value by -" + strings.ToLower(op) + "."})
	}
	return out
}

func objectCmdlets() []*Cmdlet {
	return []*Cmdlet{
		{Name: "Where-Object", Aliases: []string{"where", "?"}, Help: "Pass on the objects for which something holds.",
			Params: append([]Param{
				{Name: "FilterScript", Kind: Any, Position: 1, Mandatory: true, Aliases: []string{"Property"}, Help: "A block, or a property."},
				{Name: "Value", Kind: Any, Position: 2, Help: "What the property is compared with."}, input}, comparators()...),
			whole: where},
		{Name: "ForEach-Object", Aliases: []string{"foreach", "%"}, Help: "Run a block for each object, or return a property of each.",
			Params: []Param{{Name: "Process", Kind: Any, Position: 1, Mandatory: true, Aliases: []string{"MemberName"},
				Help: "A block, or the name of a property."}, {Name: "Begin", Kind: Code, Help: "A block that is run first."},
				{Name: "End", Kind: Code, Help: "A block that is run last."}, input},
			whole: forEach},
		{Name: "Select-Object", Aliases: []string{"select"}, Help: "Choose properties, or some of the objects.",
			Params: []Param{properties("Names of properties, with wildcards."), {Name: "ExpandProperty", Kind: String,
				Help: "The values of a property in place of the objects."}, {Name: "First", Kind: Number, Max: 1 << 31, Help: "So many of the first."},
				{Name: "Last", Kind: Number, Max: 1 << 31, Help: "So many of the last."}, {Name: "Skip", Kind: Number, Max: 1 << 31, Help: "Not so many of the first."},
				{Name: "Index", Kind: Numbers, Max: 1 << 31, Help: "Those at these places, from 0."}, {Name: "Unique", Kind: Switch, Help: "Of equal ones the first."}, input},
			whole: selectObjects},
		{Name: "Sort-Object", Aliases: []string{"sort"}, Help: "Sort objects.",
			Params: []Param{properties("By these properties."), {Name: "Descending", Kind: Switch, Help: "The largest first."},
				{Name: "Unique", Kind: Switch, Help: "Of equal ones the first."}, input},
			whole: sortObjects},
		{Name: "Measure-Object", Aliases: []string{"measure"}, Help: "Count objects, and add up a property.",
			Params: []Param{{Name: "Property", Kind: String, Position: 1, Help: "Whose values are added up."},
				{Name: "Sum", Kind: Switch, Help: "Their sum."}, {Name: "Average", Kind: Switch, Help: "Their average."},
				{Name: "Minimum", Kind: Switch, Help: "The least."}, {Name: "Maximum", Kind: Switch, Help: "The largest."}, input},
			whole: measure},
		{Name: "Group-Object", Aliases: []string{"group"}, Help: "Count objects by the value of a property.",
			Params: []Param{{Name: "Property", Kind: String, Position: 1, Help: "The property; none: by the objects themselves."}, input}, whole: group},
		{Name: "Select-String", Aliases: []string{"sls"}, Help: "Pass on the lines of text that match.",
			Params: []Param{{Name: "Pattern", Kind: String, Position: 1, Mandatory: true, Help: "A regular expression."}, input},
			whole: func(c *Call, list []any) error {
				re, err := regular(c.Text("Pattern"), false)
				for _, v := range list {
					if err == nil && re.MatchString(Text(v)) {
						c.Emit(v)
					}
				}
				return err
			}},
		{Name: "Get-Member", Aliases: []string{"gm"}, Help: "List the properties of objects.", Params: []Param{input}, whole: members},
	}
}

// where is Where-Object {...} and Where-Object Property -eq Value.
func where(c *Call, list []any) error {
	filter := c.Value("FilterScript")
	op := ""
	for _, p := range comparators() {
		if c.Bool(p.Name) {
			op = strings.ToLower(p.Name)
		}
	}
	for _, v := range list {
		var holds bool
		b, isBlock := filter.(*Block)
		switch {
		case isBlock:
			result, err := c.in.collect(func(out emit) error { return c.in.run(b, v, out) })
			if err != nil {
				return err
			}
			holds = Truth(unwrap(result))
		case op == "" && !c.Given("Value"):
			holds = Truth(c.in.property(v, Text(filter)))
		default:
			if op == "" {
				return errors.New("a comparison is missing; allowed: -eq, -ne, -like, -match, ... before the value")
			}
			result, err := c.in.operate(op, c.in.property(v, Text(filter)), c.Value("Value"))
			if err != nil {
				return err
			}
			holds = Truth(result)
		}
		if holds {
			c.Emit(v)
		}
	}
	return nil
}

func forEach(c *Call, list []any) error {
	if b, ok := c.Value("Begin").(*Block); ok {
		if err := c.in.run(b, nil, c.out); err != nil {
			return err
		}
	}
	for _, v := range list {
		b, ok := c.Value("Process").(*Block)
		if !ok {
			x, err := c.in.memberOf(v, Text(c.Value("Process")))
			if err != nil {
				return err
			}
			for _, x := range List(x) {
				c.Emit(x)
			}
			continue
		}
		if err := c.in.run(b, v, c.out); err != nil {
			return err
		}
	}
	if b, ok := c.Value("End").(*Block); ok {
		return c.in.run(b, nil, c.out)
	}
	return nil
}

// memberOf returns a property, or, of text that has none of that name, what its method returns.
func (in *Interpreter) memberOf(v any, name string) (any, error) {
	if x := in.property(v, name); x != nil {
		return x, nil
	}
	if s, ok := v.(string); ok && texts[strings.ToLower(name)].do != nil {
		return in.method(s, name, nil)
	}
	return nil, nil
}

// column is a property that a command was asked for: a name with wildcards, or @{Name=..; Expression={..}}.
type column struct {
	name  string
	block *Block
	of    string // the property, if there is no block
}

func columns(v any) (out []column, err error) {
	for _, x := range List(v) {
		switch x := x.(type) {
		case *Block:
			out = append(out, column{name: "{...}", block: x})
		case *Table:
			col := column{}
			for _, p := range x.properties {
				switch key := strings.ToLower(p.Name); {
				case strings.HasPrefix("name", key), strings.HasPrefix("label", key):
					col.name = Text(p.Value)
				case strings.HasPrefix("expression", key):
					col.block, _ = p.Value.(*Block)
					if col.block == nil {
						col.of = Text(p.Value)
					}
				}
			}
			if col.block == nil && col.of == "" {
				return nil, errors.New("a calculated property wants Name and Expression")
			}
			if col.name == "" {
				col.name = col.of
			}
			out = append(out, col)
		default:
			out = append(out, column{name: Text(x), of: Text(x)})
		}
	}
	return out, nil
}

// value is the column of an object.
func (col column) value(in *Interpreter, v any) (any, error) {
	if col.block == nil {
		return in.property(v, col.of), nil
	}
	list, err := in.collect(func(out emit) error { return in.run(col.block, v, out) })
	return unwrap(list), err
}

// expand replaces names with wildcards by the properties of an object.
func expand(cols []column, v any) (out []column) {
	o, _ := v.(*Object)
	for _, c := range cols {
		if o == nil || c.block != nil || !strings.ContainsAny(c.of, "*?[") {
			out = append(out, c)
			continue
		}
		for _, p := range o.properties {
			if Like(p.Name, c.of) {
				out = append(out, column{name: p.Name, of: p.Name})
			}
		}
	}
	return out
}

func selectObjects(c *Call, list []any) error {
	if c.Given("Index") {
		var at []any
		for i, v := range list {
			if slices.Contains(c.Numbers("Index"), int64(i)) {
				at = append(at, v)
			}
		}
		list = at
	}
	list = list[min(int(c.Number("Skip")), len(list)):]
	if c.Given("First") {
		list = list[:min(int(c.Number("First")), len(list))]
	}
	if c.Given("Last") {
		list = list[max(0, len(list)-int(c.Number("Last"))):]
	}
	cols, err := columns(c.Value("Property"))
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, v := range list {
		if name := c.Text("ExpandProperty"); name != "" {
			x := c.in.property(v, name)
			if x == nil {
				return fmt.Errorf("there is no property %q", name)
			}
			for _, e := range List(x) {
				c.Emit(e)
			}
			continue
		}
		if len(cols) > 0 {
			if v, err = c.in.chosen(cols, v); err != nil {
				return err
			}
		}
		if c.Bool("Unique") {
			if seen[Text(v)] {
				continue
			}
			seen[Text(v)] = true
		}
		c.Emit(v)
	}
	return nil
}

// chosen returns an object with the columns of another.
func (in *Interpreter) chosen(cols []column, v any) (any, error) {
	out := NewObject("Selected." + typeName(v))
	for _, col := range expand(cols, v) {
		x, err := col.value(in, v)
		if err != nil {
			return nil, err
		}
		for _, p := range properProperties(v, col) {
			out.With(p, x)
		}
	}
	return out, in.spend(len(cols) * valueBytes)
}

// properProperties returns the name of a column as the object spells it.
func properProperties(v any, col column) []string {
	if o, ok := v.(*Object); ok && col.name == col.of {
		if i := o.find(col.of); i >= 0 {
			return []string{o.properties[i].Name}
		}
	}
	return []string{col.name}
}
