package ipoib

import (
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// MostMembers is how many members a team has at most.
const MostMembers = 8

// TeamConfig describes a team: interfaces of different ports, of which one carries what the system has (WinOF 5.50, 4.2.8.2: fault
// tolerance is the only type for InfiniBand). Members are known by their places.
type TeamConfig struct {
	Members int
	// Primary is active whenever it can be, if the team fails back; -1: none is, and the first that is up is active.
	Primary    int
	NoFailBack bool
}

// Check reports what is wrong with a configuration: a *ConfigError.
func (c *TeamConfig) Check() error {
	switch {
	case c.Members < 0 || c.Members > MostMembers:
		return &ConfigError{"Members", c.Members, fmt.Sprintf("%d at most", MostMembers)}
	case c.Primary < -1 || c.Primary >= c.Members:
		return &ConfigError{"Primary", c.Primary, fmt.Sprintf("-1, or the place of one of %d members", c.Members)}
	}
	return nil
}

// Order is what the owner of a team is to have a member do.
type Order struct {
	Member int
	Kind   OrderKind
}

// OrderKind says what.
type OrderKind uint8

// The kinds of orders, after the methods of an Interface.
const (
	Yields    OrderKind = iota // Yield; what it held is kept for who takes over
	TakesOver                  // TakeOver, and what the system sends goes to it from now on
	Announces                  // Announce
)

// TeamCounters count since a team was made.
type TeamCounters struct {
	FailOvers uint64 // another member became active because one failed
	FailBacks uint64 // the primary one became active again
	Announced uint64 // rounds in which all nodes were told of the active member
}

// MemberStatus is how a member is, and what it does.
type MemberStatus struct {
	Status carrier.Status
	Role   carrier.Role
}

// Team decides which member is active. It is pure, as an Interface is, and does not touch its members, which may have locks of their own:
// it gives orders.
type Team struct {
	choice   *carrier.Chooser
	announce carrier.Announcements
	notes    carrier.Notes
	counters TeamCounters
	orders   []Order
	gone     []bool // by place: its member has left
}

// NewTeam returns a team whose members are all down. The error is a *ConfigError.
func NewTeam(cfg TeamConfig) (*Team, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Team{choice: carrier.New(cfg.Members, cfg.Primary, cfg.NoFailBack), announce: carrier.NoAnnouncements(),
		notes: carrier.NotesOf(cfg.Members), gone: make([]bool, cfg.Members)}, nil
}

// Join makes another interface a member, and returns its place. It is down until SetLink says otherwise, and then one that comes back: what
// another carries stays there until it is proven. The error is a *ConfigError.
func (t *Team) Join(primary bool) (i int, err error) {
	if i = slices.Index(t.gone, true); i < 0 {
		i = len(t.gone)
	}
	if i == MostMembers {
		return 0, &ConfigError{"Members", i + 1, fmt.Sprintf("%d at most", MostMembers)}
	}
	if i == len(t.gone) {
		t.gone = append(t.gone, false)
	}
	t.gone[i] = false
	t.choice.Join(i, primary)
	t.notes.Begin(i)
	return i, nil
}

// Leave takes a member out, as if it had failed: another carries what it has carried. Its place may be that of another that joins.
func (t *Team) Leave(now clock.Time, i int) {
	t.gone[i] = true
	t.choice.Leave(i)
	t.settle(now)
}

// SetLink says whether packets flow by a member: it is Connected. A member that is for the first time has nothing to prove: to join its
// groups takes each as long as the subnet does.
func (t *Team) SetLink(now clock.Time, i int, up bool) {
	if t.choice.Up(i) != up {
		t.choice.SetLink(now, i, up)
		t.settle(now)
	}
}

// SetDisabled takes a member out of use, or puts it back.
func (t *Team) SetDisabled(now clock.Time, i int, disabled bool) {
	if t.choice.SetDisabled(i, disabled) {
		t.settle(now)
	}
}

// settle gives the orders for another active member, if there is one.
func (t *Team) settle(now clock.Time) {
	before, move := t.choice.Choose(now)
	active := t.choice.Active()
	if move != carrier.Stays {
		if before >= 0 {
			t.orders = append(t.orders, Order{before, Yields})
		}
		t.announce.End()
		if active >= 0 {
			t.orders = append(t.orders, Order{active, TakesOver})
			t.announce.Begin(now)
			t.told(now) // to take over is to tell
		}
	}
	switch move {
	case carrier.FailsOver:
		t.counters.FailOvers++
	case carrier.FailsBack:
		t.counters.FailBacks++
	}
	for i, gone := range t.gone {
		if gone {
			continue
		}
		t.notes.Note(i, t.choice.Status(i), t.role(i))
	}
}

func (t *Team) told(now clock.Time) {
	t.counters.Announced++
	t.announce.Told(now)
}

func (t *Team) role(i int) carrier.Role {
	if i == t.choice.Active() {
		return carrier.Active
	}
	return carrier.Backup
}

// Advance does what is due.
func (t *Team) Advance(now clock.Time) {
	if t.choice.Deadline() <= now {
		t.settle(now)
	}
	if t.announce.Deadline() <= now {
		t.orders = append(t.orders, Order{t.choice.Active(), Announces})
		t.told(now)
	}
}

// Deadline returns when Advance must be called next.
func (t *Team) Deadline() clock.Time { return clock.Min(t.choice.Deadline(), t.announce.Deadline()) }

// Orders returns what is to be done now, in order, and was not returned before.
func (t *Team) Orders() []Order {
	list := t.orders
	t.orders = nil
	return list
}

// Active returns the member that carries what the system has; -1: none does.
func (t *Team) Active() int { return t.choice.Active() }

// Until returns until when a member that is not active any more hands up what is sent to it alone (Alone): its sender would send it to the
// active one by now.
func (t *Team) Until(i int) clock.Time { return t.choice.Until(i) }

// Status returns how a member is.
func (t *Team) Status(i int) MemberStatus { return MemberStatus{t.choice.Status(i), t.role(i)} }

// Counters returns the counters.
func (t *Team) Counters() TeamCounters { return t.counters }

// News returns what has changed of members since the last call, in order.
func (t *Team) News() []carrier.News { return t.notes.Take() }

// Alone reports whether an IP packet is for one node, and not for a group that all members of a team are in.
func Alone(packet []byte) bool {
	_, dst, ok := endsOf(packet)
	return ok && !dst.IsMulticast() && (!dst.Is4() || dst.As4() != [4]byte{255, 255, 255, 255})
}
