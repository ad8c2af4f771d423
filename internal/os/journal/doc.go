// Package journal writes log records to systemd's journal by its native protocol (systemd's "Native Journal Protocol"), with a field
// for each attribute, where standard error is the journal anyway: a line of text there would be one field of them all.
package journal
