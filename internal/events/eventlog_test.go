package events

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// TestEventEntry: the text has the event's own number, whatever its number is where the event log has a message for it.
func TestEventEntry(t *testing.T) {
	for _, c := range []struct {
		r    Record
		want eventEntry
	}{
		{Record{Source: "mlx4_bus", ID: 7, Severity: "Warning", Message: "m"}, eventEntry{"Warning", 7, "mlx4_bus 0x0007: m"}},
		{Record{Source: "mlx5", ID: 0x7539, Severity: "Error", Message: "stuck"}, eventEntry{"Error", 1000, "mlx5 0x7539: stuck"}},
		{Record{Source: "s", Severity: "Information"}, eventEntry{"Information", 1, "s 0x0000: "}},
		{Record{Source: "s", ID: 1000, Message: "a\x00b"}, eventEntry{"", 1000, "s 0x03e8: a b"}},
	} {
		if got := newEventEntry(c.r); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.r, got, c.want)
		}
	}
}

// TestEventEntry_Limits: whatever an event says, its entry is one that Windows takes: a number with a message, a text that is not too long
// and has no zero in it.
func TestEventEntry_Limits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.String().Draw(t, "part")
		r := Record{Source: "s", ID: rapid.Uint32().Draw(t, "id"),
			Message: strings.Repeat(part, rapid.SampledFrom([]int{1, 2, 31839}).Draw(t, "times"))}
		e := newEventEntry(r)
		if words := len(utf16.Encode([]rune(e.text))); words > 31839 || strings.Contains(e.text, "\x00") || e.id < 1 || e.id > 1000 {
			t.Errorf("number %d, %d words", e.id, words)
		}
	})
}

// TestEventLogElsewhere: another system than Windows says that it has none.
func TestEventLogElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has an event log")
	}
	if _, err := OpenSystemLog(EventLog, nil); err == nil || err.Error() != "system log eventlog: not on this system" {
		t.Error(err)
	}
}
