package powershell

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
)

// The kinds of records.
const (
	outputRecord  = "output"
	errorRecord   = "error"
	warningRecord = "warning"
	verboseRecord = "verbose"
	whatIfRecord  = "whatif"
)

// record is a result or a message as a line of JSON, which another program reads: it learns of what type a result is.
type record struct {
	Record    string          `json:"record"`
	Value     json.RawMessage `json:"value"`     // the result, or the text of a message
	Type      string          `json:"type"`      // of an object
	Exception string          `json:"exception"` // of an error: its type,
	Category  string          `json:"category"`  // and its category
}

// writeRecord writes a record as a line. It is of ASCII alone: who reads it may have any code page.
func writeRecord(w io.Writer, r record, value any) error {
	text, err := toJSON(value, maxJSONDepth, true)
	if err != nil {
		return err
	}
	r.Value = json.RawMessage(text)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	out := make([]byte, 0, len(line)+1)
	for _, c := range string(line) {
		switch {
		case c < 0x80:
			out = append(out, byte(c))
		case c < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			high, low := utf16.EncodeRune(c)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

// record prints a result as a record; of several, each.
func (p *printer) record(v any) error {
	if list, several := v.([]any); several {
		for _, x := range list {
			if err := p.record(x); err != nil {
				return err
			}
		}
		return nil
	}
	o, ok := v.(*Object)
	switch {
	case !ok:
		return writeRecord(p.out, record{Record: outputRecord}, v)
	case o.text != "":
		return writeRecord(p.out, record{Record: outputRecord}, o.text)
	}
	return writeRecord(p.out, record{Record: outputRecord, Type: o.Type}, o)
}

// asLine is the record of an error, without its text.
func (e *RunError) asLine() record {
	o := e.asRecord()
	exception, _ := o.Get("Exception")
	about, _ := o.Get("CategoryInfo")
	r := record{Record: errorRecord}
	if x, ok := exception.(*Object); ok {
		r.Exception = x.Type
	}
	if x, ok := about.(*Object); ok {
		category, _ := x.Get("Category")
		r.Category = Text(category)
	}
	return r
}
