package journal

import (
	"encoding/binary"
	"log/slog"
	"strconv"
	"strings"
)

// prefix is that of the fields of attributes, so that none can pass for one of the journal's own.
const prefix = "SOFTVPI_"

// longestName is how long a field's name may be; the journal drops fields with longer ones.
const longestName = 64

// Field appends a field. A value with line breaks has its length before it.
func Field(b []byte, name, value string) []byte {
	b = append(b, name...)
	if !strings.Contains(value, "\n") {
		b = append(b, '=')
	} else {
		b = append(b, '\n')
		b = binary.LittleEndian.AppendUint64(b, uint64(len(value)))
	}
	b = append(b, value...)
	return append(b, '\n')
}

// FieldName returns the field of an attribute: letters, digits and underscores, in capitals.
func FieldName(key string) string {
	name := prefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	return name[:min(len(name), longestName)]
}

// priority returns the syslog severity of a level (RFC 5424, 6.2.1).
func priority(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "3"
	case l >= slog.LevelWarn:
		return "4"
	case l >= slog.LevelInfo:
		return "6"
	}
	return "7"
}

// quoted returns a value as it stands in the text of a message.
func quoted(v string) string {
	if v == "" || strings.ContainsAny(v, " =\"\n\t") {
		return strconv.Quote(v)
	}
	return v
}
