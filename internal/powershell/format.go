package powershell

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// formatted is -f: {0}, {1,8}, {2:N2}, {0:X}, {{.
func (in *Interpreter) formatted(pattern string, values []any) (string, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case (c == '{' || c == '}') && i+1 < len(pattern) && pattern[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '{':
			n := strings.IndexByte(pattern[i:], '}')
			if n < 0 {
				return "", fmt.Errorf("the format %q has { without }", pattern)
			}
			s, err := formatItem(pattern[i+1:i+n], values)
			if err != nil {
				return "", err
			}
			if err := in.spend(len(s)); err != nil {
				return "", err
			}
			b.WriteString(s)
			i += n
		case c == '}':
			return "", fmt.Errorf("the format %q has } without {", pattern)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

func formatItem(item string, values []any) (string, error) {
	head, form, _ := strings.Cut(item, ":")
	at, width, _ := strings.Cut(head, ",")
	i, err := strconv.Atoi(strings.TrimSpace(at))
	if len(values) == 0 { // $null is one value
		values = []any{nil}
	}
	if err != nil || i < 0 || i >= len(values) {
		return "", fmt.Errorf("the format has {%s}, but there are %d values", item, len(values))
	}
	s, err := formatValue(values[i], form)
	if err != nil {
		return "", err
	}
	if width == "" {
		return s, nil
	}
	w, err := strconv.Atoi(strings.TrimSpace(width))
	if err != nil || w > maxPad || w < -maxPad {
		return "", fmt.Errorf("the width of {%s} is no number from -%d to %d", item, maxPad, maxPad)
	}
	return fmt.Sprintf("%*s", w, s), nil
}

// formatValue formats a number: X hexadecimal, D decimal, N with commas, F with a fraction, P percent.
func formatValue(v any, form string) (string, error) {
	if form == "" {
		return Text(v), nil
	}
	digits := -1
	if len(form) > 1 {
		n, err := strconv.Atoi(form[1:])
		if err != nil || n < 0 || n > 99 {
			return "", fmt.Errorf("format %q is not understood; allowed: X, D, N, F, P, each with digits", form)
		}
		digits = n
	}
	n, err := number(v)
	if err != nil {
		return Text(v), nil //nolint:nilerr // text has no format of numbers
	}
	or := func(d int) int {
		if digits < 0 {
			return d
		}
		return digits
	}
	whole, isWhole := n.(int64)
	switch form[0] {
	case 'x', 'X':
		if !isWhole {
			break
		}
		return fmt.Sprintf("%0*"+string(form[0]), max(0, digits), uint64(whole)), nil
	case 'd', 'D':
		if !isWhole {
			break
		}
		return fmt.Sprintf("%0*d", max(0, digits), whole), nil
	case 'n', 'N':
		return thousands(fixed(float(n), or(2))), nil
	case 'f', 'F':
		return fixed(float(n), or(2)), nil
	case 'p', 'P':
		return fixed(float(n)*100, or(2)) + " %", nil
	}
	return "", fmt.Errorf("format %q does not fit %s; allowed: X, D (whole numbers), N, F, P, each with digits", form, Text(v))
}

// fixed writes a number with so many digits behind the point; a half is rounded away from zero, as .NET does.
func fixed(f float64, digits int) string {
	exact := strconv.FormatFloat(f, 'f', -1, 64)
	if _, fraction, _ := strings.Cut(exact, "."); len(fraction) == digits+1 && strings.HasSuffix(fraction, "5") {
		f = math.Nextafter(f, math.Copysign(math.Inf(1), f))
	}
	return strconv.FormatFloat(f, 'f', digits, 64)
}

func thousands(s string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, s = "-", rest
	}
	whole, rest, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + rest
	}
	return sign + whole
}
