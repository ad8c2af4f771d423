package powershell

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"
)

// compare returns how two values are ordered: the right one is converted to the type of the left (about_Comparison_Operators). Values
// that have no order are an error; equality asks equal.
func compare(a, b any, heed bool) (int, error) {
	switch a := a.(type) {
	case int64, float64, bool:
		x, _ := number(a)
		y, err := number(b)
		if err != nil {
			return 0, err
		}
		i, aInt := x.(int64)
		j, bInt := y.(int64)
		switch {
		case aInt && bInt && i < j, !(aInt && bInt) && float(x) < float(y):
			return -1, nil
		case aInt && bInt && i > j, !(aInt && bInt) && float(x) > float(y):
			return 1, nil
		}
		return 0, nil
	case *Object:
		if n, ok := a.enumerated(); ok {
			if o := a.class.member(b); o != nil {
				b, _ = o.enumerated()
			}
			return compare(n, b, heed)
		}
	case string, nil:
		s, t := Text(a), Text(b)
		if !heed {
			s, t = strings.ToLower(s), strings.ToLower(t)
		}
		return strings.Compare(s, t), nil
	}
	return 0, fmt.Errorf("values of %s have no order", typeName(a))
}

func equal(a, b any, heed bool) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	switch a := a.(type) {
	case bool:
		return a == Truth(b)
	case *Object:
		if _, ok := a.enumerated(); ok {
			c, err := compare(a, b, heed)
			return err == nil && c == 0
		}
		return sameObject(a, b)
	case *Table, *Block, []any:
		return sameObject(a, b)
	}
	if _, isBool := b.(bool); isBool {
		if _, isText := a.(string); isText {
			return strings.EqualFold(Text(a), Text(b))
		}
	}
	c, err := compare(a, b, heed)
	return err == nil && c == 0
}

// sameObject reports whether two values are one object.
func sameObject(a, b any) bool {
	switch a := a.(type) {
	case *Object:
		o, ok := b.(*Object)
		return ok && o == a
	case *Table:
		t, ok := b.(*Table)
		return ok && t == a
	case *Block:
		t, ok := b.(*Block)
		return ok && t == a
	}
	return false
}

// wildcard returns the regular expression of a pattern with *, ? and [a-z] (about_Wildcards).
func wildcard(pattern string, heed bool) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("(?s")
	if !heed {
		b.WriteString("i")
	}
	b.WriteString(")^")
	src := []rune(pattern)
	for i := 0; i < len(src); i++ {
		switch r := src[i]; r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '`':
			if i+1 < len(src) {
				i++
			}
			b.WriteString(regexp.QuoteMeta(string(src[i])))
		case '[':
			j := slices.Index(src[i:], ']')
			if j < 2 {
				return nil, fmt.Errorf("%q is no pattern: [ without ]", pattern)
			}
			b.WriteString("[" + strings.NewReplacer(`\`, `\\`, "^", `\^`, "[", `\[`).Replace(string(src[i+1:i+j])) + "]")
			i += j
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern", pattern)
	}
	return re, nil
}

// Like reports whether text matches a pattern with wildcards, in any letter case. A pattern that is none matches only itself.
func Like(text, pattern string) bool {
	re, err := wildcard(pattern, false)
	if err != nil {
		return strings.EqualFold(text, pattern)
	}
	return re.MatchString(text)
}

func regular(pattern string, heed bool) (*regexp.Regexp, error) {
	flags := "(?i)"
	if heed {
		flags = ""
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression that is understood: %w", pattern, errors.Unwrap(err))
	}
	return re, nil
}

// predicate returns the test of a comparison operator without its c or i.
func predicate(op string, right any, heed bool) (func(any) (bool, error), error) {
	ordered := func(want func(int) bool) func(any) (bool, error) {
		return func(v any) (bool, error) {
			c, err := compare(v, right, heed)
			return err == nil && want(c), err
		}
	}
	switch op {
	case "eq":
		return func(v any) (bool, error) { return equal(v, right, heed), nil }, nil
	case "ne":
		return func(v any) (bool, error) { return !equal(v, right, heed), nil }, nil
	case "gt":
		return ordered(func(c int) bool { return c > 0 }), nil
	case "ge":
		return ordered(func(c int) bool { return c >= 0 }), nil
	case "lt":
		return ordered(func(c int) bool { return c < 0 }), nil
	case "le":
		return ordered(func(c int) bool { return c <= 0 }), nil
	case "like", "notlike", "match", "notmatch":
		kind := strings.TrimPrefix(op, "not")
		build := regular
		if kind == "like" {
			build = wildcard
		}
		re, err := build(Text(right), heed)
		if err != nil {
			return nil, err
		}
		return func(v any) (bool, error) { return re.MatchString(Text(v)) == (op == kind), nil }, nil
	}
	return nil, fmt.Errorf("-%s is no comparison", op)
}

// within reports whether a list has a value.
func within(list, v any, heed bool) bool {
	return slices.ContainsFunc(List(list), func(x any) bool { return equal(x, v, heed) })
}

// arithmetic is + - * / % on numbers; text and lists are joined and repeated by the evaluator.
func arithmetic(op string, a, b any) (any, error) {
	x, err := number(a)
	if err != nil {
		return nil, err
	}
	y, err := number(b)
	if err != nil {
		return nil, err
	}
	i, whole := x.(int64)
	j, both := y.(int64)
	if whole = whole && both; whole {
		if v, ok := wholeArithmetic(op, i, j); ok {
			return v, nil
		}
	}
	f, g := float(x), float(y)
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	}
	if g == 0 {
		return nil, errDivision
	}
	if op == "%" {
		return math.Mod(f, g), nil
	}
	return f / g, nil
}

// wholeArithmetic is arithmetic on whole numbers; false: the result is none.
func wholeArithmetic(op string, i, j int64) (int64, bool) {
	switch op {
	case "+":
		s := i + j
		return s, (s > i) == (j > 0)
	case "-":
		s := i - j
		return s, (s < i) == (j > 0)
	case "*":
		hi, lo := bits.Mul64(magnitude(i), magnitude(j))
		return i * j, hi == 0 && lo < 1<<63
	case "/":
		return quotient(i, j)
	case "%":
		if j != 0 && j != -1 {
			return i % j, true
		}
		return 0, j == -1
	}
	return 0, false
}

func quotient(i, j int64) (int64, bool) {
	if j == 0 || j == -1 || i%j != 0 {
		return 0, false
	}
	return i / j, true
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}
