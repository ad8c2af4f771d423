// Package budget limits what programs make one process hold for them: each program, all programs of one
// user, those of one container, and all together. It only counts: whoever allocates takes from the program's account first, and
// gives back when the thing is gone.
package budget

import (
	"fmt"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// Resource is something that is held.
type Resource uint8

// The resources.
const (
	Memory      Resource = iota // bytes
	Descriptors                 // open files
	resources
)

// Limits are the limits of one resource.
type Limits struct {
	Program uint64 // of one program
	User    uint64 // of all programs of one user
	Total   uint64 // of all programs
}

// Share returns the limits that follow from a total: half of it for one program, three quarters for the
// programs of one user. So what one program takes leaves something for others, and what one user takes
// leaves something for other users.
func Share(total uint64) Limits { return Limits{Program: total / 2, User: total / 4 * 3, Total: total} }

// Ledger counts what programs hold. The zero value has no room for anything; New creates one that has.
type Ledger struct {
	limits [resources]Limits

	mu      sync.Mutex
	used    [resources]uint64
	users   map[int]*user
	refused [resources]uint64
}

type user struct {
	used     [resources]uint64
	accounts int
}

// New creates a ledger.
func New(memory, descriptors Limits) *Ledger {
	return &Ledger{limits: [resources]Limits{memory, descriptors}, users: map[int]*user{}}
}

// Quota is what the programs of one container may hold together, within the limits of all. Its zero limits are no limits.
type Quota struct {
	name    string
	setting string // that has its limit of memory; empty: the configuration of containers has it
	limits  [resources]uint64
	used    [resources]uint64
	refused [resources]uint64
}

// NewQuota creates a quota; name is that of the container in errors.
func NewQuota(name string, memory, descriptors uint64) *Quota {
	return &Quota{name: name, limits: [resources]uint64{memory, descriptors}}
}

// By says by which setting a quota's limit of memory is set, for errors; it returns q.
func (q *Quota) By(setting string) *Quota {
	q.setting = setting
	return q
}

// limit returns that of a resource.
func (q *Quota) limit(r Resource) uint64 {
	if q.limits[r] == 0 {
		return ^uint64(0)
	}
	return q.limits[r]
}

// Account is what one program holds. Its methods are safe for concurrent use and do not block. A nil
// Account is that of a program without limits.
type Account struct {
	ledger  *Ledger
	uid     int
	of      *user
	quota   *Quota // never nil
	used    [resources]uint64
	refused [resources]uint64
	tell    func(cause error)
	closed  bool
}

// Open opens the account of a program of a user.
func (l *Ledger) Open(uid int) *Account { return l.OpenIn(uid, new(Quota)) }

// OpenIn opens the account of a program of a user in a container.
func (l *Ledger) OpenIn(uid int, q *Quota) *Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[uid]
	if u == nil {
		u = new(user)
		l.users[uid] = u
	}
	u.accounts++
	return &Account{ledger: l, uid: uid, of: u, quota: q}
}

// Tell has the first refusal of each resource told, with the error that Take returns. tell must not block, nor call the
// account.
func (a *Account) Tell(tell func(cause error)) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.tell = tell
}

// Take takes n of a resource for what, a noun with its article as messages have it. If that is beyond a
// limit nothing is taken, and the error is a *command.Error, Exhausted, that names the limit.
func (a *Account) Take(r Resource, n uint64, what string) error {
	if a == nil {
		return nil
	}
	l := a.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &l.limits[r]
	for _, c := range [...]struct {
		used, limit uint64
		whose       string
		field       string
	}{
		{a.used[r], m.Program, "this program", "_per_program"},
		{a.quota.used[r], a.quota.limit(r), a.quota.name, ofContainer},
		{a.of.used[r], m.User, fmt.Sprintf("the programs of user %d", a.uid), "_per_user"},
		{l.used[r], m.Total, "all programs", ""},
	} {
		if c.used <= c.limit && n <= c.limit-c.used {
			continue
		}
		a.refused[r]++
		a.quota.refused[r]++
		l.refused[r]++
		err := command.Errorf(command.Exhausted, "%s takes %d %s: the driver holds %d for %s: allowed: %d (%s)",
			what, n, units[r], c.used, c.whose, c.limit, a.fieldOf(r, c.field))
		if a.tell != nil && a.refused[r] == 1 {
			a.tell(err)
		}
		return err
	}
	a.used[r] += n
	a.of.used[r] += n
	a.quota.used[r] += n
	l.used[r] += n
	return nil
}

var (
	names = [resources]string{"memory", "descriptors"}
	units = [resources]string{"bytes of memory", "descriptors"}
)

// ofContainer stands for the limit of a container.
const ofContainer = "container"

// fieldOf returns the field of the configuration that has a limit.
func (a *Account) fieldOf(r Resource, of string) string {
	if of == ofContainer && r == Memory && a.quota.setting != "" {
		return a.quota.setting
	}
	if of == ofContainer {
		return "containers." + names[r]
	}
	return "limits." + names[r] + of
}

// Give gives back n of a resource.
func (a *Account) Give(r Resource, n uint64) {
	if a == nil {
		return
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.give(r, n)
}

func (a *Account) give(r Resource, n uint64) {
	n = min(n, a.used[r])
	a.used[r] -= n
	a.of.used[r] -= n
	a.quota.used[r] -= n
	a.ledger.used[r] -= n
	a.settle()
}

// settle forgets a user without open accounts.
func (a *Account) settle() {
	if a.closed && a.used == [resources]uint64{} {
		if a.of.accounts == 0 && a.of.used == [resources]uint64{} {
			delete(a.ledger.users, a.uid)
		}
	}
}

// Close closes the account of a program that is gone. What it still holds stays counted until it is given
// back.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	a.of.accounts--
	a.settle()
}

// Usage is how much of a resource is held.
type Usage struct {
	Used    uint64
	Refused uint64 // how often more was wanted than the limits allow
}

// Usage returns how much the program holds.
func (a *Account) Usage(r Resource) Usage {
	if a == nil {
		return Usage{}
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return Usage{a.used[r], a.refused[r]}
}

// Usage returns how much all programs hold, together with those that have ended and of which something is
// left.
func (l *Ledger) Usage(r Resource) Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Usage{l.used[r], l.refused[r]}
}

// Limit changes the limit of a quota, 0: none; what is held stays.
func (l *Ledger) Limit(q *Quota, r Resource, limit uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.limits[r] = limit
}

// UsageOf returns how much the programs of a container hold, and its limit; 0: none.
func (l *Ledger) UsageOf(q *Quota, r Resource) (u Usage, limit uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Usage{q.used[r], q.refused[r]}, q.limits[r]
}

// Limits returns the limits of a resource.
func (l *Ledger) Limits(r Resource) Limits { return l.limits[r] }
