package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parse reads an entry as the journal does.
func parse(t rapid.TB, b []byte) map[string]string {
	fields := map[string]string{}
	for len(b) > 0 {
		end := bytes.IndexAny(b, "=\n")
		if end < 0 {
			t.Fatalf("no end of a field's name in %q", b)
		}
		name, binaryValue := string(b[:end]), b[end] == '\n'
		b = b[end+1:]
		n := bytes.IndexByte(b, '\n')
		if binaryValue {
			n = int(binary.LittleEndian.Uint64(b))
			b = b[8:]
		}
		if n < 0 || n >= len(b) || b[n] != '\n' {
			t.Fatalf("field %s does not end with a line break", name)
		}
		fields[name] = string(b[:n])
		b = b[n+1:]
	}
	return fields
}

// collect returns a logger and the entries that it has sent.
func collect(fallback slog.Handler) (*slog.Logger, *[][]byte) {
	var sent [][]byte
	return slog.New(NewHandler(func(b []byte) error {
		sent = append(sent, b)
		return nil
	}, slog.LevelInfo, fallback)), &sent
}

// TestFields: an entry has the message with the attributes, the priority of its level, and a field for each attribute, those of groups
// with the names of their groups.
func TestFields(t *testing.T) {
	log, sent := collect(slog.DiscardHandler)
	log.Debug("below the level")
	log.With("adapter", "left").WithGroup("link").Warn("went down", "port", 1, slog.Group("", slog.String("why", "two\nlines")))
	if len(*sent) != 1 {
		t.Fatalf("%d entries, want 1", len(*sent))
	}
	got := parse(t, (*sent)[0])
	for name, want := range map[string]string{
		"MESSAGE": `went down adapter=left link.port=1 link.why="two\nlines"`, "PRIORITY": "4", "SYSLOG_IDENTIFIER": "softvpi",
		"SOFTVPI_ADAPTER": "left", "SOFTVPI_LINK_PORT": "1", "SOFTVPI_LINK_WHY": "two\nlines",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 6 {
		t.Errorf("fields %v", got)
	}
}

// TestPriorities: each level has its syslog severity.
func TestPriorities(t *testing.T) {
	for l, want := range map[slog.Level]string{slog.LevelError: "3", slog.LevelWarn: "4", slog.LevelInfo: "6", slog.LevelDebug: "7"} {
		if got := priority(l); got != want {
			t.Errorf("%v: %s, want %s", l, got, want)
		}
	}
}

// TestAnyValue: no key and no value breaks an entry or another field.
func TestAnyValue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key, value, message := rapid.StringN(1, -1, -1).Draw(r, "key"), rapid.String().Draw(r, "value"), rapid.String().Draw(r, "message")
		log, sent := collect(slog.DiscardHandler)
		log.Info(message, key, value)
		got := parse(r, (*sent)[0])
		if got[FieldName(key)] != value || got["PRIORITY"] != "6" || !strings.HasPrefix(got["MESSAGE"], message) || len(got) != 4 {
			r.Fatalf("%q", got)
		}
	})
}

// TestFallback: what the journal does not take is written as before.
func TestFallback(t *testing.T) {
	var text bytes.Buffer
	h := NewHandler(func([]byte) error { return errors.New("message too long") }, slog.LevelInfo, slog.NewTextHandler(&text, nil))
	slog.New(h).With("adapter", "left").Error("lost")
	if !strings.Contains(text.String(), "msg=lost adapter=left") {
		t.Errorf("written: %q", text.String())
	}
}
