package powershell

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
)

// maxJSONDepth is how deep ConvertTo-Json goes.
const maxJSONDepth = 100

// jsonValue is a value in the form in which encoding/json writes it, with the order of properties kept.
func jsonValue(v any, depth int) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			if depth <= 0 {
				out[i] = Text(x)
				continue
			}
			out[i] = jsonValue(x, depth-1)
		}
		return out
	case *Table:
		return jsonObject(&v.Object, depth)
	case *Object:
		return jsonObject(v, depth)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return Text(v)
		}
		return v
	case nil, bool, int64, string:
		return v
	}
	return Text(v)
}

func jsonObject(o *Object, depth int) any {
	if depth < 0 {
		return Text(o)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o.properties {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(p.Name)
		b.Write(name)
		b.WriteByte(':')
		value, err := json.Marshal(jsonValue(p.Value, depth-1))
		if err != nil {
			value, _ = json.Marshal(Text(p.Value))
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return json.RawMessage(b.Bytes())
}

func toJSON(v any, depth int, compact bool) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if !compact {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(jsonValue(v, depth)); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b.Bytes(), "\n")), nil
}

func writeJSON(w io.Writer, v any) error {
	s, err := toJSON(v, maxJSONDepth, false)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, s+"\n")
	return err
}
