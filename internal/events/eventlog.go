package events

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Events in Windows' event log have the messages of EventCreate.exe, which every Windows has: one for each number from 1 to 1000, which is
// the text of the event alone.
const (
	firstEventID = 1
	lastEventID  = 1000
)

// mostEventText is how many UTF-16 words ReportEvent takes as a text (learn.microsoft.com, "ReportEventW": 31,839 characters).
const mostEventText = 31839

// eventEntry is an event as Windows' event log has it.
type eventEntry struct {
	severity string // as that of a Record
	id       uint32
	text     string // with the event's own number and source
}

// newEventEntry returns an event for Windows' event log. Its number there is its own if there is a message for it, else the last.
func newEventEntry(r Record) eventEntry {
	text := strings.ReplaceAll(fmt.Sprintf("%s %s: %s", r.Source, Hex(r.ID), r.Message), "\x00", " ")
	if words := utf16.Encode([]rune(text)); len(words) > mostEventText {
		text = string(utf16.Decode(words[:mostEventText-1])) // half of a character becomes one that stands for what is wrong
	}
	return eventEntry{r.Severity, min(max(r.ID, firstEventID), lastEventID), text}
}
