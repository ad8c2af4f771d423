package catalogue

import (
	"fmt"
	"strings"
)

// MessageID returns the MESSAGE_ID by which systemd's journal knows events of a kind: 32 hexadecimal digits; empty: there is no such event.
func MessageID(source string, id uint32) string { return messageIDs[eventKey{source, id}] }

// fieldInJournal returns the journal's name of a field of events: letters, digits and underscores, in capitals (journal.FieldName).
func fieldInJournal(name string) string { return "SOFTVPI_" + strings.ToUpper(name) }

// JournalCatalog returns a message catalogue of all events for systemd, by which journalctl -x explains them ("Journal Message Catalogs",
// systemd.io/CATALOG): an entry for each MESSAGE_ID, with a subject and a text in which the entry's fields stand between @.
func JournalCatalog() string {
	var b strings.Builder
	b.WriteString("# SoftVPI's events. Journald compiles this: journalctl --update-catalog. Made by: softvpi setup unit --kind catalog\n")
	for i := range Events() {
		e := &Events()[i]
		fmt.Fprintf(&b, "\n-- %s\nSubject: %s: %s 0x%04x, %s\nDefined-By: SoftVPI\nDocumentation: file:///usr/share/doc/softvpi/docs/events.md\n\n",
			MessageID(e.Source, e.ID), e.Symbol, e.Source, e.ID, strings.ToLower(e.Severity.String()))
		in := map[string]string{}
		for _, f := range e.Fields {
			in[f] = "@" + fieldInJournal(f) + "@"
		}
		b.WriteString(e.Message(in) + "\n")
		for _, s := range e.Sources {
			fmt.Fprintf(&b, "\nIn the manual: %s, %s\n", s.Manual, s.Section)
		}
	}
	return b.String()
}
