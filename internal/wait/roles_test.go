package wait

import (
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// newRoles returns roles and whether their watchdog has been woken since it was last asked.
func newRoles() (r *Roles, woken func() bool) {
	r = &Roles{}
	r.Init()
	return r, func() bool {
		select {
		case <-r.watchdog.ch:
			return true
		default:
			return false
		}
	}
}

// nobody is woken.
func nobody() {}

// TestRoles_TheOnlyWaiterIsThePollOwner: a waiter becomes the poll owner if it is the only one, and only once the watchdog,
// which it wakes, has made room.
func TestRoles_TheOnlyWaiterIsThePollOwner(t *testing.T) {
	r, _ := newRoles()
	r.Enter()
	if !r.TryOwn() {
		t.Fatal("the watchdog cannot become the poll owner of a loop that nobody owns")
	}
	wakes := 0
	if r.Own(func() { wakes++ }) || wakes != ownerTries {
		t.Errorf("took the role of a watchdog that does not make room, after %d tries", wakes)
	}
	if !r.Own(r.Disown) || r.TryOwn() {
		t.Error("the only waiter is not the poll owner although the watchdog made room")
	}
	r.Abdicate()
	r.Enter()
	if r.Own(nobody) {
		t.Error("one of two waiters is the poll owner")
	}
	r.Leave()
	if !r.Own(nobody) {
		t.Error("the last waiter is not the poll owner")
	}
}

// TestRoles_TheWatchdogPollsForFollowers: it is woken by a follower whom nobody polls for, and by a poll owner that leaves
// its role while there are followers, and by no other.
func TestRoles_TheWatchdogPollsForFollowers(t *testing.T) {
	r, woken := newRoles()
	r.Enter()
	if r.Follow(); !woken() {
		t.Error("not woken by a follower whom nobody polls for")
	}
	r.Unfollow()
	if !r.Own(nobody) {
		t.Fatal("the only waiter is not the poll owner")
	}
	if r.Follow(); woken() {
		t.Error("woken by a follower of a poll owner")
	}
	if r.Abdicate(); !woken() {
		t.Error("not woken when the poll owner leaves a follower")
	}
	r.Unfollow()
	r.Own(nobody)
	if r.Abdicate(); woken() {
		t.Error("woken when the poll owner leaves nobody")
	}
}

// TestRoles_TheWatchdogWatchesWhileOthersPoll: it watches a poll owner, and a thread that drives the loop unless there are
// followers, until they stop; a command makes it look soon, but only while it watches.
func TestRoles_TheWatchdogWatchesWhileOthersPoll(t *testing.T) {
	r, woken := newRoles()
	var dog Watchdog
	if r.Others(&dog) {
		t.Error("watches though nobody polls")
	}
	r.Driven()
	if !r.Others(&dog) {
		t.Error("does not watch a thread that drives the loop")
	}
	r.followers.Add(1)
	if r.Others(&dog) {
		t.Error("watches though there are followers")
	}
	r.followers.Add(-1)
	if r.Soon(); woken() {
		t.Error("woken by a command though it does not watch")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Watch(&dog, nobody, func() bool { return false }) // until the second look, which finds no further turn
	}()
	<-ended
	if r.Others(&dog) {
		t.Error("still watches after nobody has driven the loop")
	}
}

// TestRoles_TheWatchdogParksBesideASleepingPollOwner: it looks seldomer and seldomer and then not at all, until the poll owner
// leaves its role.
func TestRoles_TheWatchdogParksBesideASleepingPollOwner(t *testing.T) {
	r, _ := newRoles()
	r.Enter()
	r.Own(nobody)
	var dog Watchdog
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Watch(&dog, nobody, func() bool { return false })
	}()
	await.Eventually(t, "it parks, after parkAfter looks", r.parked.Load)
	if r.Soon(); !r.parked.Load() {
		t.Error("woken by a command though the poll owner takes care of it")
	}
	r.Abdicate()
	<-ended
}

// TestRoles_WhoLooksAtTheLinksOfASleeperSeesToItsWaking: a poll owner that is the watchdog is woken at once and watches; one that is a
// waiter sleeps on, and the watchdog, though it has parked, wakes it again and again until it has armed the links.
func TestRoles_WhoLooksAtTheLinksOfASleeperSeesToItsWaking(t *testing.T) {
	r, woken := newRoles()
	wakes := 0
	if r.TryOwn(); woken() {
		t.Error("woken though it has done nothing yet")
	}
	if r.Disarm(func() { wakes++ }); wakes != 1 || woken() {
		t.Errorf("%d wake-ups of the watchdog on the links, want 1 and none elsewhere", wakes)
	}
	r.Disown()
	r.Armed()

	r.Enter()
	r.Own(nobody)
	var dog Watchdog
	var armed atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Watch(&dog, func() { armed.Add(1) }, func() bool { return false })
	}()
	await.Eventually(t, "it parks", r.parked.Load)
	r.Disarm(func() { t.Error("the waiter is woken while others drive the loop") })
	await.Eventually(t, "it wakes the poll owner, twice", func() bool { return armed.Load() >= 2 })
	r.Armed()
	await.Eventually(t, "it parks again", r.parked.Load)
	r.Abdicate()
	<-ended
}
