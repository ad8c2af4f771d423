package powershell

import (
	"errors"
	"fmt"
	"strings"
)

// texts are the methods of strings, with how many arguments they take at least and at most.
var texts = map[string]struct {
	least, most int
	do          func(s string, args []any) (any, error)
}{
	"toupper":          {0, 0, func(s string, _ []any) (any, error) { return strings.ToUpper(s), nil }},
	"tolower":          {0, 0, func(s string, _ []any) (any, error) { return strings.ToLower(s), nil }},
	"toupperinvariant": {0, 0, func(s string, _ []any) (any, error) { return strings.ToUpper(s), nil }},
	"tolowerinvariant": {0, 0, func(s string, _ []any) (any, error) { return strings.ToLower(s), nil }},
	"trim":             {0, 1, trimmer(strings.TrimSpace, strings.Trim)},
	"trimstart":        {0, 1, trimmer(func(s string) string { return strings.TrimLeft(s, " \t\r\n") }, strings.TrimLeft)},
	"trimend":          {0, 1, trimmer(func(s string) string { return strings.TrimRight(s, " \t\r\n") }, strings.TrimRight)},
	"startswith":       {1, 1, func(s string, a []any) (any, error) { return strings.HasPrefix(s, Text(a[0])), nil }},
	"endswith":         {1, 1, func(s string, a []any) (any, error) { return strings.HasSuffix(s, Text(a[0])), nil }},
	"contains":         {1, 1, func(s string, a []any) (any, error) { return strings.Contains(s, Text(a[0])), nil }},
	"indexof":          {1, 1, func(s string, a []any) (any, error) { return runeIndex(s, strings.Index(s, Text(a[0]))), nil }},
	"lastindexof":      {1, 1, func(s string, a []any) (any, error) { return runeIndex(s, strings.LastIndex(s, Text(a[0]))), nil }},
	"replace":          {2, 2, replaceText},
	"split":            {0, 1, splitText},
	"substring":        {1, 2, substring},
	"padleft":          {1, 2, func(s string, a []any) (any, error) { return pad(s, a, true) }},
	"padright":         {1, 2, func(s string, a []any) (any, error) { return pad(s, a, false) }},
	"insert":           {2, 2, insert},
	"remove":           {1, 2, remove},
	"compareto":        {1, 1, func(s string, a []any) (any, error) { return compareTo(s, Text(a[0])), nil }},
	"tochararray":      {0, 0, characters},
}

func runeIndex(s string, bytes int) int64 {
	if bytes < 0 {
		return -1
	}
	return int64(len([]rune(s[:bytes])))
}

func trimmer(plain func(string) string, of func(string, string) string) func(string, []any) (any, error) {
	return func(s string, a []any) (any, error) {
		if len(a) == 0 {
			return plain(s), nil
		}
		return of(s, Text(a[0])), nil
	}
}

func replaceText(s string, a []any) (any, error) {
	from := Text(a[0])
	if from == "" {
		return nil, errors.New("method Replace wants text to replace")
	}
	if n := strings.Count(s, from); n > 0 && n > (64<<20)/max(1, len(Text(a[1]))) {
		return nil, errors.New("the result of Replace is too long")
	}
	return strings.ReplaceAll(s, from, Text(a[1])), nil
}

func splitText(s string, a []any) (any, error) {
	separators := " \t\r\n"
	if len(a) == 1 {
		separators = Text(a[0])
	}
	out := []any{}
	start := 0
	for i, r := range s {
		if strings.ContainsRune(separators, r) {
			out = append(out, s[start:i])
			start = i + len(string(r))
		}
	}
	return append(out, s[start:]), nil
}

func substring(s string, a []any) (any, error) {
	r := []rune(s)
	from, err := Integer(a[0])
	if err != nil {
		return nil, err
	}
	n := int64(len(r)) - from
	if len(a) == 2 {
		if n, err = Integer(a[1]); err != nil {
			return nil, err
		}
	}
	if from < 0 || n < 0 || from > int64(len(r)) || n > int64(len(r))-from {
		return nil, fmt.Errorf("there is no part of %d characters from %d on in %d characters", n, from, len(r))
	}
	return string(r[from : from+n]), nil
}

// maxPad limits the width of text that is padded, or of a formatted number.
const maxPad = 1 << 16

func pad(s string, a []any, left bool) (any, error) {
	fill := " "
	if len(a) == 2 {
		if fill = Text(a[1]); len([]rune(fill)) != 1 {
			return nil, fmt.Errorf("a filling of %q; allowed: one character", fill)
		}
	}
	n, err := Integer(a[0])
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxPad {
		return nil, fmt.Errorf("a width of %d; allowed: 0 to %d", n, maxPad)
	}
	space := strings.Repeat(fill, max(0, int(n)-len([]rune(s))))
	if left {
		return space + s, nil
	}
	return s + space, nil
}

func insert(s string, a []any) (any, error) {
	head, err := substring(s, []any{int64(0), a[0]})
	if err != nil {
		return nil, err
	}
	return Text(head) + Text(a[1]) + s[len(Text(head)):], nil
}

func remove(s string, a []any) (any, error) {
	head, err := substring(s, []any{int64(0), a[0]})
	if err != nil || len(a) == 1 {
		return head, err
	}
	gone, err := substring(s, a)
	if err != nil {
		return nil, err
	}
	return Text(head) + s[len(Text(head))+len(Text(gone)):], nil
}

// compareTo orders text by its letters; of equal ones small letters come first.
func compareTo(s, t string) int64 {
	if n := strings.Compare(strings.ToLower(s), strings.ToLower(t)); n != 0 {
		return int64(n)
	}
	return -int64(strings.Compare(s, t))
}

func characters(s string, _ []any) (any, error) {
	list := []any{}
	for _, r := range s {
		list = append(list, string(r))
	}
	return list, nil
}
