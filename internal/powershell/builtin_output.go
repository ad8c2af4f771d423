package powershell

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

func message(help string) []Param {
	return []Param{{Name: "Message", Kind: Any, Position: 1, Mandatory: true, Piped: true, Aliases: []string{"Object", "InputObject"}, Help: help}}
}

func outputCmdlets() []*Cmdlet {
	return []*Cmdlet{
		{Name: "Format-Table", Aliases: []string{"ft"}, Help: "Show objects as a table.",
			Params: []Param{properties("The columns."), {Name: "AutoSize", Kind: Switch, Help: "Columns are always as wide as they have to be."},
				{Name: "Wrap", Kind: Switch, Help: "Nothing is cut off in any case."}, {Name: "HideTableHeaders", Kind: Switch, Help: "Without headers."},
				{Name: "GroupBy", Kind: String, Help: "A table for each value of a property."}, input},
			whole: func(c *Call, list []any) error { return c.formatObjects(list, true) }},
		{Name: "Format-List", Aliases: []string{"fl"}, Help: "Show objects as lists of properties.",
			Params: []Param{properties("The properties."), {Name: "Force", Kind: Switch, Help: "All of them."}, input},
			whole:  func(c *Call, list []any) error { return c.formatObjects(list, false) }},
		{Name: "Out-File", Help: "Write results to a file as they are shown.", Changes: true,
			Params: []Param{{Name: "FilePath", Kind: String, Position: 1, Mandatory: true, Aliases: []string{"Path", "LiteralPath"}, Help: "The file."},
				{Name: "Append", Kind: Switch, Help: "Behind what it has."}, {Name: "Encoding", Kind: String, Help: "It is UTF-8 in any case."},
				{Name: "Width", Kind: Number, Help: "Lines are not cut off in any case."}, {Name: "Force", Kind: Switch, Help: "As without."},
				{Name: "NoClobber", Kind: Switch, Help: "Not if it exists."}, input},
			whole: outFile},
		{Name: "Out-Null", Help: "Show nothing.", Params: []Param{input}, whole: func(*Call, []any) error { return nil }},
		{Name: "Out-Host", Aliases: []string{"oh"}, Help: "Show results.", Params: []Param{input, {Name: "Paging", Kind: Switch, Help: "Not here."}},
			whole: passOn},
		{Name: "Out-String", Help: "Return results as text, as they are shown.",
			Params: []Param{input, {Name: "Width", Kind: Number, Help: "Lines are not cut off in any case."}, {Name: "Stream", Kind: Switch, Help: "Line by line."}},
			whole:  outString},
		{Name: "Write-Output", Aliases: []string{"echo", "write"}, Help: "Return values.",
			Params: []Param{{Name: "InputObject", Kind: Any, Rest: true, Piped: true, Help: "The values."}}, whole: passOn},
		{Name: "Write-Host", Help: "Show text.",
			Params: append([]Param{{Name: "Object", Kind: Any, Rest: true, Piped: true, Aliases: []string{"Message", "InputObject"}, Help: "The text."}},
				Param{Name: "ForegroundColor", Kind: String, Help: "There are no colours."},
				Param{Name: "BackgroundColor", Kind: String, Help: "There are no colours."}, Param{Name: "NoNewline", Kind: Switch, Help: "Lines always end."}),
			Run: func(c *Call) error { return c.in.print(Text(c.Value("Object"))) }},
		{Name: "Write-Warning", Help: "Show a warning.", Params: message("The text."),
			Run: func(c *Call) error { c.Warn("%s", Text(c.Value("Message"))); return nil }},
		{Name: "Write-Verbose", Help: "Show text with -Verbose.", Params: message("The text."),
			Run: func(c *Call) error { c.Verbose("%s", Text(c.Value("Message"))); return nil }},
		{Name: "Write-Error", Help: "Fail with a text.", Params: message("The text."),
			Run: func(c *Call) error { return &classified{writeErrorException, errors.New(Text(c.Value("Message")))} }},
		{Name: "ConvertTo-Json", Help: "Return objects as JSON.",
			Params: []Param{{Name: "Depth", Kind: Number, Min: 0, Max: maxJSONDepth, Help: "Levels of objects in each other; 2."},
				{Name: "Compress", Kind: Switch, Help: "In one line."}, {Name: "AsArray", Kind: Switch, Help: "An array even of one object."}, input},
			whole: convertToJSON},
		{Name: "ConvertTo-Csv", Help: "Return objects as lines of CSV.",
			Params: []Param{{Name: "NoTypeInformation", Kind: Switch, Help: "There is none in any case."}, input}, whole: convertToCSV},
		{Name: "Start-Sleep", Aliases: []string{"sleep"}, Help: "Wait.",
			Params: []Param{{Name: "Seconds", Kind: Any, Position: 1, Set: "seconds", Help: "So many seconds."},
				{Name: "Milliseconds", Kind: Number, Max: 1e9, Set: "milliseconds", Help: "So many milliseconds."}},
			Run: sleep},
		{Name: "Import-Module", Aliases: []string{"ipmo"}, Help: "Have the commands of a module, which here are always there.",
			Params: []Param{{Name: "Name", Kind: Strings, Position: 1, Mandatory: true, Help: "The module."}, {Name: "Force", Kind: Switch, Help: "As without."}},
			Run:    importModule},
		{Name: "Set-Variable", Aliases: []string{"sv", "set"}, Help: "Set a variable.",
			Params: []Param{{Name: "Name", Kind: String, Position: 1, Mandatory: true, Help: "Its name."},
				{Name: "Value", Kind: Any, Position: 2, Help: "Its value."}},
			Run: func(c *Call) error {
				return c.in.setVariable(&variable{name: strings.ToLower(c.Text("Name"))}, "", c.Value("Value"))
			}},
	}
}

func passOn(c *Call, list []any) error {
	if c.Given("InputObject") {
		list = List(c.Value("InputObject"))
	}
	for _, v := range list {
		c.Emit(v)
	}
	return nil
}

// formatObjects is Format-Table and Format-List: their results are lines of text, as they are only of use there.
func (c *Call) formatObjects(list []any, table bool) error {
	cols, err := columns(c.Value("Property"))
	if err != nil {
		return err
	}
	rows := []*Object{}
	var names []string
	for i, v := range list {
		o, ok := v.(*Object)
		if t, isTable := v.(*Table); isTable {
			o, ok = &t.Object, true
		}
		if !ok {
			c.Emit(v)
			continue
		}
		if len(cols) > 0 {
			x, err := c.in.chosen(cols, o)
			if err != nil {
				return err
			}
			o = x.(*Object)
		}
		if i == 0 && (table || len(cols) > 0) {
			names = shown(o, table && len(cols) == 0)
		}
		rows = append(rows, o)
	}
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	if table {
		err = writeTable(&b, rows, names, c.Bool("HideTableHeaders"))
	} else {
		err = writeList(&b, rows, names)
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		c.Emit(strings.TrimSuffix(line, "\n"))
	}
	return c.in.spend(b.Len())
}

// shown are the names of the properties that are shown.
func shown(o *Object, byDefault bool) (names []string) {
	if byDefault && len(o.Show) > 0 {
		return o.Show
	}
	for _, p := range o.properties {
		names = append(names, p.Name)
	}
	return names
}

func outFile(c *Call, list []any) error {
	name := c.Text("FilePath")
	if name == "" {
		return &ParameterError{"-FilePath is missing", "", "the name of a file"}
	}
	if !c.Should("Output to File", name) {
		return nil
	}
	if c.Bool("NoClobber") && !c.Bool("Append") {
		return errors.New("-NoClobber is not supported; allowed: -Append, or neither")
	}
	return c.in.writeFile(name, list, c.Bool("Append"))
}

func outString(c *Call, list []any) error {
	var b strings.Builder
	p := printer{out: &limitedWriter{&b, c.in.limits.Output, c.in.limits.Output}}
	for _, v := range list {
		if err := p.print(v); err != nil {
			return err
		}
	}
	if err := p.flush(); err != nil {
		return err
	}
	if !c.Bool("Stream") {
		c.Emit(b.String())
	} else {
		for line := range strings.Lines(b.String()) {
			c.Emit(strings.TrimSuffix(line, "\n"))
		}
	}
	return c.in.spend(b.Len())
}

func convertToJSON(c *Call, list []any) error {
	depth := 2
	if c.Given("Depth") {
		depth = int(c.Number("Depth"))
	}
	v := unwrap(list)
	if c.Bool("AsArray") {
		v = list
	}
	if len(list) > 1 || c.Bool("AsArray") {
		depth++
	}
	s, err := toJSON(v, depth, c.Bool("Compress"))
	if err != nil {
		return err
	}
	c.Emit(s)
	return c.in.spend(len(s))
}

func convertToCSV(c *Call, list []any) error {
	var names []string
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	for _, v := range list {
		o, ok := v.(*Object)
		if !ok {
			return fmt.Errorf("a value of %s has no properties", typeName(v))
		}
		if names == nil {
			names = shown(o, false)
			head := make([]string, len(names))
			for i, n := range names {
				head[i] = quote(n)
			}
			c.Emit(strings.Join(head, ","))
		}
		row := make([]string, len(names))
		for i, n := range names {
			x, _ := o.Get(n)
			row[i] = quote(shallow(x))
		}
		c.Emit(strings.Join(row, ","))
	}
	return nil
}

func sleep(c *Call) error {
	d := time.Duration(c.Number("Milliseconds")) * time.Millisecond
	if c.Given("Seconds") {
		n, err := number(c.Value("Seconds"))
		if err != nil {
			return err
		}
		const longest = 86400
		if f := float(n); f >= 0 && f <= longest {
			d = time.Duration(f * float64(time.Second))
		} else {
			return &ParameterError{"-Seconds", Text(n), "0 to 86400"}
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.Context.Done():
		return c.Context.Err()
	}
}

// modules are those whose commands there are, besides those of the host.
var modules = []string{"Microsoft.PowerShell.Utility", "Microsoft.PowerShell.Management"}

func importModule(c *Call) error {
	for _, name := range c.Texts("Name") {
		known := append(c.in.cfg.Host.Modules(), modules...)
		found := false
		for _, m := range known {
			found = found || strings.EqualFold(m, name)
		}
		if !found {
			return &ParameterError{"-Name", name, strings.Join(known, ", ")}
		}
		c.Verbose("The commands of module %s are always there.", name)
	}
	return nil
}
