package powershell

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Text returns a value as text, as it stands in a string.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case []any:
		words := make([]string, len(v))
		for i, x := range v {
			words[i] = elementText(x)
		}
		return strings.Join(words, " ")
	case *Table:
		return "System.Collections.Hashtable"
	case *Object:
		if v.text != "" {
			return v.text
		}
		if len(v.properties) == 0 || v.class != nil {
			return v.Type
		}
		words := make([]string, len(v.properties))
		for i, p := range v.properties {
			words[i] = p.Name + "=" + shallow(p.Value)
		}
		return "@{" + strings.Join(words, "; ") + "}"
	case *Block:
		return "{...}"
	}
	return fmt.Sprint(v)
}

// elementText is the text of an element of a list: a list in a list is named by its type.
func elementText(v any) string {
	if _, list := v.([]any); list {
		return "System.Object[]"
	}
	return Text(v)
}

// shallow is the text of a property in the text of its object, which goes no deeper.
func shallow(v any) string {
	switch v := v.(type) {
	case []any:
		return "System.Object[]"
	case *Object:
		if v.text != "" {
			return v.text
		}
		return v.Type
	}
	return Text(v)
}

func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "∞"
	case math.IsInf(f, -1):
		return "-∞"
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'G', -1, 64)
}

// Truth returns a value as a condition (about_Booleans).
func Truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		switch len(v) {
		case 0:
			return false
		case 1:
			return Truth(v[0])
		}
	}
	return true
}

// number returns a value as a number, an int64 or a float64.
func number(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return int64(0), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case int64, float64:
		return v, nil
	case *Object:
		if n, ok := v.enumerated(); ok {
			return n, nil
		}
	case string:
		text := strings.TrimSpace(v)
		if text == "" {
			return int64(0), nil
		}
		if n, ok := parseNumber(text); ok {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%q is no number", Text(v))
}

// Integer returns a value as a whole number; numbers with a fraction are rounded to the even one, as PowerShell does.
func Integer(v any) (int64, error) {
	n, err := number(v)
	if err != nil {
		return 0, err
	}
	if f, ok := n.(float64); ok {
		if f = math.RoundToEven(f); math.Abs(f) >= 1<<63 || math.IsNaN(f) {
			return 0, fmt.Errorf("%v is too large for a whole number", f)
		}
		return int64(f), nil
	}
	return n.(int64), nil
}

func float(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64)
}

// List returns a value as a list: an array as it is, nothing as an empty one, any other value alone.
func List(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// unwrap is what a pipeline's results are as a value: nothing, the only one, or an array.
func unwrap(list []any) any {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

// typeName returns the name of a value's type.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "System.Boolean"
	case int64:
		return "System.Int64"
	case float64:
		return "System.Double"
	case string:
		return "System.String"
	case []any:
		return "System.Object[]"
	case *Table:
		return "System.Collections.Hashtable"
	case *Block:
		return "System.Management.Automation.ScriptBlock"
	case *Object:
		return v.Type
	}
	return "System.Object"
}

// conversions are the types to which values can be converted, besides exceptions; [] behind one is a list of them.
var conversions = []string{"string", "bool", "boolean", "switch", "switchparameter", "int", "int32", "int64", "long", "uint32", "uint64",
	"byte", "uint16", "int16", "uint8", "sbyte", "double", "float", "single", "decimal", "array", "object", "pscustomobject", "psobject",
	"hashtable", "scriptblock"}

// convert is [name] v.
func convert(name string, v any) (any, error) {
	x, err := converted(name, v)
	return x, classify(castException, err)
}

func converted(name string, v any) (any, error) {
	if kind := exceptionNamed(name); kind != "" {
		return newException(kind, Text(v)), nil
	}
	name = strings.TrimPrefix(name, "system.")
	if elem, ok := strings.CutSuffix(name, "[]"); ok {
		list := []any{}
		for _, x := range List(v) {
			c, err := convert(elem, x)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
		return list, nil
	}
	switch name {
	case "string":
		return Text(v), nil
	case "bool", "boolean", "switch", "switchparameter":
		return Truth(v), nil
	case "int", "int32", "int64", "long", "uint32", "uint64", "byte", "uint16", "int16", "uint8", "sbyte":
		return Integer(v)
	case "double", "float", "single", "decimal":
		n, err := number(v)
		if err != nil {
			return nil, err
		}
		return float(n), nil
	case "array":
		return List(v), nil
	case "object":
		return v, nil
	case "void":
		return nil, nil
	case "pscustomobject", "psobject":
		if t, ok := v.(*Table); ok {
			o := t.clone()
			o.Type = "PSCustomObject"
			return o, nil
		}
		return v, nil
	case "scriptblock":
		if _, ok := v.(*Block); ok || v == nil {
			return v, nil
		}
	case "ordered", "hashtable":
		if v == nil {
			return nil, nil
		}
		if t, ok := v.(*Table); ok {
			return t, nil
		}
	}
	return nil, fmt.Errorf("there is no conversion to [%s]; allowed: string, bool, int, long, byte, double, array, pscustomobject", name)
}
