package ibport

import (
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// aliasEvery is how often aliases are asked for that were refused: somebody else may have given them back.
const aliasEvery = 10 * time.Second

// guidsInBlock is how many rows a block of GUIDInfo has.
const guidsInBlock = len(mad.GUIDInfo{})

// Asks asks the subnet administration, as [Port.Ask].
type Asks func(now clock.Time, r sa.Request, done func(now clock.Time, answer *sa.Answer))

// alias is how far a virtual function's alias GUIDs have been asked for, at the subnet administration (IBA 15.2.5.18), which the subnet
// manager then writes to the port (IBA 14.2.5.5).
type alias struct {
	ask    Asks // of the physical function, whose port it is; nil: there are none
	due    clock.Time
	asking int    // requests so far, of which the last one counts
	held   ib.LID // LID of the port whose rows were asked for, 0: none were
	err    error
}

var (
	errTaken    = errors.New("the subnet administration has not granted the GUID: somebody else has it")
	errNoChoice = errors.New("the subnet administration chooses no GUIDs (sm_assigned_guid)")
)

// again makes the next Advance ask.
func (a *alias) again() {
	if a.due = 0; a.ask == nil { // as of a virtual port, which has its GUID from the start
		a.due = clock.Never
	}
}

// askAliases asks for the rows of a virtual function.
func (p *Port) askAliases(now clock.Time) {
	a, v := &p.alias, p.share
	a.due = clock.Never
	if v == nil || a.ask == nil || p.physical.State != mad.PortActive || p.physical.SMLID == 0 {
		return // the next change of the port asks
	}
	a.asking++
	this := a.asking
	block, at := v.First/guidsInBlock, v.First%guidsInBlock
	var table mad.GUIDInfo
	copy(table[at:], v.Aliases[:v.Used])
	a.held = p.physical.LID
	a.ask(now, sa.GUIDs(a.held, uint8(block), v.entries(), table), func(now clock.Time, answer *sa.Answer) {
		if a.asking != this {
			return
		}
		err := answer.Err
		if err == nil {
			err = v.granted(answer)
		}
		if err != nil {
			a.due = now.Add(aliasEvery)
		}
		if err != nil && (a.err == nil || a.err.Error() != err.Error()) {
			p.log.Warn("a virtual function does not have the alias GUID that was asked for", "cause", err)
		}
		a.err = err
	})
}

// granted returns why an answer does not have all that was asked for.
func (v *Share) granted(answer *sa.Answer) error {
	rec, err := mad.ParseGUIDInfoRecord(answer.Data[:])
	if err != nil {
		return err
	}
	for i, want := range v.Aliases[:v.Used] {
		switch have := rec.Table[v.First%guidsInBlock+i]; {
		case have == 0 && want == 0:
			return errNoChoice
		case have != want && want != 0:
			return errTaken
		}
	}
	return nil
}

// entries returns the entries of the block that a share has.
func (v *Share) entries() uint8 { return (1<<v.Used - 1) << (v.First % guidsInBlock) }

// returnAliases gives the rows of a virtual function back.
func (p *Port) returnAliases(now clock.Time) {
	a, v := &p.alias, p.share
	if v == nil || a.ask == nil || a.held == 0 {
		return
	}
	a.asking++
	a.due = clock.Never
	a.ask(now, sa.ReturnGUIDs(a.held, uint8(v.First/guidsInBlock), v.entries()), func(clock.Time, *sa.Answer) {})
	a.held = 0
}
