package sa

import (
	"encoding/binary"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// Where a MAD of the administration has its method and its record (IBA 15.2.1.1).
const (
	methodAt = 3
	maskAt   = recordAt - 8
	recordAt = mad.Len - mad.SADataLen
)

// supersede ends the unanswered requests that a new one undoes.
func (c *Client) supersede(now clock.Time, by *pending) {
	if method := by.mad[methodAt]; method != mad.MethodSet && method != mad.MethodDelete {
		return // whoever asks changes nothing, and may ask thousands of things at once
	}
	var over []*pending
	for _, p := range c.pending {
		if by.undoes(p) {
			p.done = true
			over = append(over, p)
		}
	}
	if len(over) == 0 {
		return
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(p *pending) bool { return p.done })
	for _, p := range over {
		c.finish(now, p, Answer{Ticket: Ticket(p.tid), Err: ErrSuperseded})
	}
}

// undoes reports whether the request sets the record that another deletes, or deletes the one that it sets.
func (p *pending) undoes(former *pending) bool {
	if attributeOf(p) != attributeOf(former) {
		return false
	}
	switch method := former.mad[methodAt]; p.mad[methodAt] {
	case mad.MethodSet:
		return method == mad.MethodDelete && p.concerns(former, true)
	case mad.MethodDelete:
		return method == mad.MethodSet && p.concerns(former, false)
	}
	return false
}

// concerns reports whether a request is about the record of a former one: the same service (IBA 15.2.5.14: ID, GID and P_Key), the same
// membership (15.2.5.17: MGID and PortGID) of a kind that both name (some), or of all kinds that the former one names, or the same
// entries of a block of GUIDs (15.2.5.18).
func (p *pending) concerns(former *pending, some bool) bool {
	switch attributeOf(p) {
	case mad.AttrServiceRecord:
		a, err := mad.ParseServiceRecord(p.mad[recordAt:])
		b, failed := mad.ParseServiceRecord(former.mad[recordAt:])
		return err == nil && failed == nil && a.ID == b.ID && a.GID == b.GID && a.PKey == b.PKey
	case mad.AttrMCMemberRecord:
		a, err := mad.ParseMCMemberRecord(p.mad[recordAt:])
		b, failed := mad.ParseMCMemberRecord(former.mad[recordAt:])
		if err != nil || failed != nil || a.MGID != b.MGID || a.PortGID != b.PortGID {
			return false
		}
		if some {
			return a.JoinState&b.JoinState != 0
		}
		return b.JoinState&^a.JoinState == 0
	case mad.AttrGUIDInfoRecord:
		a, err := mad.ParseGUIDInfoRecord(p.mad[recordAt:])
		b, failed := mad.ParseGUIDInfoRecord(former.mad[recordAt:])
		return err == nil && failed == nil && a.LID == b.LID && a.Block == b.Block && p.mask() == former.mask()
	}
	return false
}

// mask returns the components of the request's record that count.
func (p *pending) mask() uint64 { return binary.BigEndian.Uint64(p.mad[maskAt:]) }
