package events

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"
)

// QueryWait is Query, but if nothing matches it waits for a match until ctx ends, which is no error.
func (l *Log) QueryWait(ctx context.Context, q Query) (Page, error) {
	for missed := uint64(0); ; {
		p, err := l.Query(q)
		missed += p.Missed
		p.Missed = missed
		if err != nil || len(p.Events) > 0 {
			return p, err
		}
		q.After = p.Next
		if err := l.Wait(ctx, q.After); err != nil {
			return p, nil // closed, or the time is over
		}
	}
}

// Values encodes a query as parameters; ParseQuery decodes them.
func (q Query) Values() url.Values {
	v := url.Values{"source": q.Sources, "severity": q.Severity, "adapter": q.Adapters}
	for _, id := range q.IDs {
		v.Add("id", strconv.FormatUint(uint64(id), 10))
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if !q.Until.IsZero() {
		v.Set("until", q.Until.Format(time.RFC3339Nano))
	}
	if q.After > 0 {
		v.Set("after", strconv.FormatUint(q.After, 10))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// ParseQuery decodes a query from parameters: id (decimal or 0x...), source, severity and adapter, each
// any number of times; since and until (RFC 3339), after and limit. The error is a *FieldError.
func ParseQuery(v url.Values) (Query, error) {
	q := Query{Sources: v["source"], Severity: v["severity"], Adapters: v["adapter"]}
	for _, s := range v["id"] {
		id, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			return q, &FieldError{"id", strconv.Quote(s), "a number, decimal or 0x..."}
		}
		q.IDs = append(q.IDs, uint32(id))
	}
	var errs []error
	moment := func(name string, t *time.Time) {
		if s := v.Get(name); s != "" {
			var err error
			if *t, err = time.Parse(time.RFC3339Nano, s); err != nil {
				errs = append(errs, &FieldError{name, strconv.Quote(s), "a time such as 2026-11-20T16:51:47Z"})
			}
		}
	}
	moment("since", &q.Since)
	moment("until", &q.Until)
	if s := v.Get("after"); s != "" {
		var err error
		if q.After, err = strconv.ParseUint(s, 10, 64); err != nil {
			errs = append(errs, &FieldError{"after", strconv.Quote(s), "the number of an event"})
		}
	}
	if s := v.Get("limit"); s != "" {
		var err error
		if q.Limit, err = strconv.Atoi(s); err != nil {
			errs = append(errs, &FieldError{"limit", strconv.Quote(s), "1 to " + strconv.Itoa(MaxPage)})
		}
	}
	return q, errors.Join(errs...)
}
