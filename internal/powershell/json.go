package powershell

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
)

// maxJSONDepth is how deep ConvertTo-Json goes.
const maxJSONDepth = 100

// maxJSONValues is how many values ConvertTo-Json writes: tables may hold each other, and themselves.
const maxJSONValues = 1 << 20

// jsonWriter writes values as JSON without blanks. Properties keep their order.
type jsonWriter struct {
	bytes.Buffer
	left    int
	scalars *json.Encoder // to the buffer
}

// value writes a value; what is deeper than depth as text.
func (w *jsonWriter) value(v any, depth int) error {
	if w.left--; w.left < 0 {
		return &LimitError{"values in JSON", maxJSONValues}
	}
	switch v := v.(type) {
	case []any:
		w.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := w.inner(x, depth); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	case *Table:
		return w.object(&v.Object, depth)
	case *Object:
		return w.object(v, depth)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return w.plain(Text(v))
		}
		return w.plain(v)
	case nil, bool, int64, string:
		return w.plain(v)
	}
	return w.plain(Text(v))
}

// inner writes a value in another one.
func (w *jsonWriter) inner(v any, depth int) error {
	switch v.(type) {
	case []any, *Object, *Table:
		if depth <= 0 {
			return w.plain(Text(v))
		}
	}
	return w.value(v, depth-1)
}

func (w *jsonWriter) object(o *Object, depth int) error {
	if n, ok := o.enumerated(); ok {
		return w.plain(n)
	}
	w.WriteByte('{')
	for i, p := range o.properties {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := w.plain(p.Name); err != nil {
			return err
		}
		w.WriteByte(':')
		if err := w.inner(p.Value, depth); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (w *jsonWriter) plain(v any) error {
	if err := w.scalars.Encode(v); err != nil {
		return err
	}
	w.Truncate(w.Len() - 1) // the line's end
	return nil
}

func toJSON(v any, depth int, compact bool) (string, error) {
	w := &jsonWriter{left: maxJSONValues}
	w.scalars = json.NewEncoder(&w.Buffer)
	w.scalars.SetEscapeHTML(false)
	if err := w.value(v, depth); err != nil {
		return "", err
	}
	if compact {
		return w.String(), nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, w.Bytes(), "", "  "); err != nil {
		return "", err
	}
	return b.String(), nil
}

func writeJSON(w io.Writer, v any) error {
	s, err := toJSON(v, maxJSONDepth, false)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, s+"\n")
	return err
}
