package journal

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// Handler is a slog.Handler that sends each record as an entry. The message has the attributes too, for those who see only that.
type Handler struct {
	send     func([]byte) error
	level    slog.Leveler
	fallback slog.Handler // of records that the journal does not take
	attrs    []slog.Attr  // with the names of their groups
	group    string
}

// NewHandler returns a handler of records of at least that level. fallback has those that send fails for, such as entries that are
// too long for a datagram.
func NewHandler(send func([]byte) error, level slog.Leveler, fallback slog.Handler) *Handler {
	return &Handler{send: send, level: level, fallback: fallback}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		next.attrs = flatten(next.attrs, h.group, a)
	}
	next.fallback = h.fallback.WithAttrs(attrs)
	return &next
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group = h.group + name + "."
	next.fallback = h.fallback.WithGroup(name)
	return &next
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = flatten(attrs, h.group, a)
		return true
	})
	if h.send(entry(r, attrs)) == nil {
		return nil
	}
	return h.fallback.Handle(ctx, r)
}

// entry returns a record in the native protocol.
func entry(r slog.Record, attrs []slog.Attr) []byte {
	var text strings.Builder
	text.WriteString(r.Message)
	var fields []byte
	for _, a := range attrs {
		v := a.Value.String()
		text.WriteString(" " + a.Key + "=" + quoted(v))
		fields = Field(fields, FieldName(a.Key), v)
	}
	b := Field(nil, "MESSAGE", text.String())
	b = Field(b, "PRIORITY", priority(r.Level))
	b = Field(b, "SYSLOG_IDENTIFIER", "softvpi")
	return append(b, fields...)
}

// flatten appends an attribute, those of a group one by one.
func flatten(list []slog.Attr, group string, a slog.Attr) []slog.Attr {
	a.Value = a.Value.Resolve()
	if a.Value.Kind() != slog.KindGroup {
		if a.Key == "" {
			return list
		}
		return append(list, slog.Attr{Key: group + a.Key, Value: a.Value})
	}
	if a.Key != "" {
		group += a.Key + "."
	}
	for _, x := range a.Value.Group() {
		list = flatten(list, group, x)
	}
	return list
}
