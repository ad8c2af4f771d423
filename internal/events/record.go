package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Record is an event in the log.
type Record struct {
	// Sequence numbers the events of a log from 1 on. Gaps are caused only by rotation and failing disks.
	Sequence uint64            `json:"sequence"`
	Time     time.Time         `json:"time"`
	Source   string            `json:"source"`
	ID       uint32            `json:"id"`
	Severity string            `json:"severity"` // Information, Warning, Error
	Symbol   string            `json:"symbol"`
	Adapter  string            `json:"adapter,omitempty"`
	Fields   map[string]string `json:"fields,omitempty"`
	Message  string            `json:"message"`
}

// Hex is a number that events show in hexadecimal.
type Hex uint32

// String returns 0x and at least four digits.
func (h Hex) String() string { return fmt.Sprintf("0x%04x", uint32(h)) }

// maxValue limits a field's value in bytes, so that names chosen by peers and programs cannot fill the
// log.
const maxValue = 1024

// errOtherGeneration says that only adapters of another generation report an event.
var errOtherGeneration = errors.New("events: of another generation")

// newRecord returns the record of an event of an adapter of that generation; events of no adapter belong
// to any.
func newRecord(g catalogue.Generation, e Event) (Record, error) {
	if g == 0 {
		g = catalogue.MLX5
	}
	v := reflect.ValueOf(e)
	symbol := v.Type().Name()
	entry, ok := catalogue.EventFor(symbol, g)
	if !ok {
		if _, other := catalogue.EventFor(symbol, catalogue.Both); other {
			return Record{}, errOtherGeneration
		}
		return Record{}, fmt.Errorf("events: the catalogue has no event %s", symbol)
	}
	r := Record{Source: entry.Source, ID: entry.ID, Severity: entry.Severity.String(), Symbol: symbol}
	for _, name := range entry.Fields {
		f := v.FieldByName(name)
		if !f.IsValid() {
			return Record{}, fmt.Errorf("events: %s has no field %s", symbol, name)
		}
		if r.Fields == nil {
			r.Fields = map[string]string{}
		}
		r.Fields[name] = text(f.Interface())
	}
	r.Adapter = r.Fields["Adapter"]
	r.Message = entry.Message(r.Fields)
	return r, nil
}

func text(v any) string {
	switch x := v.(type) {
	case nil:
		return "unknown"
	case []netip.Addr:
		all := make([]string, 0, len(x))
		for _, a := range x {
			all = append(all, a.String())
		}
		if len(all) == 0 {
			return "none"
		}
		return clean(strings.Join(all, ", "))
	}
	return clean(fmt.Sprint(v))
}

// clean turns a value into one line of valid text of limited length.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) <= maxValue {
		return s
	}
	cut := maxValue
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

func (r *Record) encode() ([]byte, error) { return json.Marshal(r) }

func decodeRecord(b []byte) (r Record, err error) {
	err = json.Unmarshal(b, &r)
	return r, err
}
