package device

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// defaultLimits returns the limits of an adapter without limits of its own, which are also the maximum.
func defaultLimits() Limits {
	return Limits{
		QP: 512 << 10, CQ: 512 << 10, SRQ: 64 << 10, MR: 1 << 20, MW: 1 << 20, PD: 64 << 10, AH: 512 << 10,
		QPDepth: 32 << 10, CQDepth: ring.MaxEntries, SRQDepth: 64 << 10,
		SGE: 16, Inline: 512,
		ReadResponder: transport.MaxReadAtomic, ReadInitiator: transport.MaxReadAtomic,
		Message: 1 << 31, Region: 1 << 40,
		DM:            16 << 20,
		ClientObjects: 1 << 20, ClientArenaMemory: 8 << 30,
	}
}

// complete fills in the defaults and refuses larger values.
func (l *Limits) complete() error {
	d := defaultLimits()
	for _, f := range []struct {
		name       string
		value, max *uint32
	}{
		{"QP", &l.QP, &d.QP}, {"CQ", &l.CQ, &d.CQ}, {"SRQ", &l.SRQ, &d.SRQ}, {"MR", &l.MR, &d.MR}, {"MW", &l.MW, &d.MW},
		{"PD", &l.PD, &d.PD}, {"AH", &l.AH, &d.AH}, {"QPDepth", &l.QPDepth, &d.QPDepth}, {"CQDepth", &l.CQDepth, &d.CQDepth},
		{"SRQDepth", &l.SRQDepth, &d.SRQDepth}, {"SGE", &l.SGE, &d.SGE}, {"Inline", &l.Inline, &d.Inline},
		{"ReadResponder", &l.ReadResponder, &d.ReadResponder}, {"ReadInitiator", &l.ReadInitiator, &d.ReadInitiator},
	} {
		if err := limit(f.name, f.value, *f.max); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name       string
		value, max *uint64
	}{
		{"Message", &l.Message, &d.Message}, {"Region", &l.Region, &d.Region}, {"DM", &l.DM, &d.DM},
		{"ClientObjects", &l.ClientObjects, &d.ClientObjects}, {"ClientArenaMemory", &l.ClientArenaMemory, &d.ClientArenaMemory},
	} {
		if err := limit(f.name, f.value, *f.max); err != nil {
			return err
		}
	}
	return nil
}

func limit[T uint32 | uint64](name string, v *T, most T) error {
	if *v == 0 {
		*v = most
	}
	if *v > most {
		return command.Errorf(command.Invalid, "Limits.%s is %d, want at most %d", name, *v, most)
	}
	return nil
}

// within checks a requested size.
func within(field string, v, least, most uint32) error {
	if v < least || v > most {
		return command.Errorf(command.Invalid, "%s is %d, want %d to %d", field, v, least, most)
	}
	return nil
}

// flags checks that a field of bits has no others than those that are known.
func flags(field string, v, known uint32) error {
	if v&^known != 0 {
		return command.Errorf(command.Invalid, "%s is %#x, want a combination of the bits %#x", field, v, known)
	}
	return nil
}

// full returns the error for exceeding a limit on objects.
func full(what string, most uint32) error {
	return command.Errorf(command.Exhausted, "%s: all %d of the adapter are in use", what, most)
}

func notFound(what string, h command.Handle) error {
	return command.Errorf(command.NotFound, "%s %#x", what, uint32(h))
}

func busy(what string, uses int) error {
	return command.Errorf(command.Busy, "%s is in use by %s", what, plural(uses, "object"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
