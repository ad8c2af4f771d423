package powershell

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// rewrite is -replace and -split: of text, or of each element of a list (about_Comparison_Operators, about_Split).
func (in *Interpreter) rewrite(op string, left, right any, heed bool) (any, error) {
	args := List(right)
	if len(args) == 0 || len(args) > 2 {
		return nil, fmt.Errorf("-%s wants a pattern, or a pattern and %s", op, map[string]string{"replace": "what comes in its place",
			"split": "how many parts there are at most"}[op])
	}
	for _, a := range args {
		if _, block := a.(*Block); block {
			return nil, fmt.Errorf("-%s with a block is not in the part of PowerShell that is understood; allowed: a pattern as text", op)
		}
	}
	re, err := regular(Text(args[0]), heed)
	if err != nil {
		return nil, err
	}
	do := in.replacer(re, args[1:])
	if op == "split" {
		do = in.splitter(re, args[1:])
	}
	out := []any{}
	for _, v := range List(left) {
		parts, err := do(Text(v))
		if err != nil {
			return nil, err
		}
		out = append(out, parts...)
		if err := in.spend(len(Text(v)) + len(parts)*valueBytes); err != nil {
			return nil, err
		}
	}
	if _, several := left.([]any); several {
		return out, nil
	}
	return unwrap(out), nil
}

// splitter returns what divides text where a pattern matches. Groups of the pattern are among the parts, as in .NET.
func (in *Interpreter) splitter(re *regexp.Regexp, args []any) func(string) ([]any, error) {
	return func(s string) (out []any, err error) {
		most := int64(math.MaxInt32)
		if len(args) == 1 {
			n, err := Integer(args[0])
			switch {
			case err != nil:
				return nil, err
			case n < 0:
				return nil, errors.New("-split wants 0 parts, which is all, or more")
			case n > 0:
				most = min(n, most)
			}
		}
		from := 0
		for _, m := range re.FindAllStringSubmatchIndex(s, int(most-1)) {
			out = append(out, s[from:m[0]])
			for g := 2; g < len(m); g += 2 {
				if m[g] >= 0 {
					out = append(out, s[m[g]:m[g+1]])
				}
			}
			from = m[1]
		}
		return append(out, s[from:]), nil
	}
}

func (in *Interpreter) replacer(re *regexp.Regexp, args []any) func(string) ([]any, error) {
	to := ""
	if len(args) == 1 {
		to = Text(args[0])
	}
	return func(s string) ([]any, error) {
		form, err := substitution(re, to)
		if err != nil {
			return nil, err
		}
		n, size := len(re.FindAllStringIndex(s, -1)), len(to)
		if strings.Contains(to, "$") { // groups are no longer than the text
			size += strings.Count(to, "$") * len(s)
		}
		if size > 0 && n > in.limits.Memory/size {
			return nil, &LimitError{"bytes of values", in.limits.Memory}
		}
		out := re.ReplaceAllString(s, form)
		return []any{out}, in.spend(len(out))
	}
}

// reference is what stands for a group, or for a $, in what -replace puts in place of a match.
var reference = regexp.MustCompile(`\$(\$|&|\d+|\{\w+\}|[` + "`" + `'+_])?`)

// substitution returns what comes in place of a match in Go's form, of that in .NET's: $1, ${name}, $& and $$. A $ before anything else,
// and a group that the pattern does not have, is text.
func substitution(re *regexp.Regexp, to string) (string, error) {
	var wrong error
	out := reference.ReplaceAllStringFunc(to, func(r string) string {
		name := strings.Trim(r[1:], "{}")
		n, err := strconv.Atoi(name)
		switch {
		case r == "$$":
			return r
		case r == "$&":
			return "${0}"
		case name != "" && strings.ContainsAny(name, "`'+") || r == "$_":
			wrong = fmt.Errorf("%s in -replace is not in the part of PowerShell that is understood; allowed: $1, ${name}, $&, $$", r)
		case err == nil && n <= re.NumSubexp(), err != nil && name != "" && re.SubexpIndex(name) > 0:
			return "${" + name + "}"
		}
		return "$" + r
	})
	return out, wrong
}
