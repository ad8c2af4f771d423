package wait

import (
	"sync"
	"sync/atomic"
)

// Owner says who polls for whom where any of those who wait may be the poll owner, and hands the role to the next: each
// follower sleeps on a channel of its own and on Offered. A thread that does not wait itself may be the poll owner as well.
type Owner struct {
	mu        sync.Mutex    // held by the poll owner
	offer     chan struct{} // token: a follower may become the poll owner
	followers atomic.Int32
}

// Init makes the role one that nobody has.
func (o *Owner) Init() { o.offer = make(chan struct{}, 1) }

// Follow makes the caller a follower until Unfollow or Promote.
func (o *Owner) Follow() { o.followers.Add(1) }

// Unfollow undoes Follow. It reports whether the caller was the last follower and has taken back the offer of the role
// that nobody took: then it polls once, unless somebody else is the poll owner.
func (o *Owner) Unfollow() (offered bool) {
	if o.followers.Add(-1) > 0 {
		return false
	}
	select {
	case <-o.offer:
		return true
	default:
		return false
	}
}

// Promote makes a follower the poll owner, unless somebody is. It is no follower then.
func (o *Owner) Promote() bool {
	if !o.mu.TryLock() {
		return false
	}
	o.followers.Add(-1)
	return true
}

// Own makes the caller the poll owner once nobody else is.
func (o *Owner) Own() { o.mu.Lock() }

// TryOwn makes the caller the poll owner, unless somebody is.
func (o *Owner) TryOwn() bool { return o.mu.TryLock() }

// Disown ends the caller's role.
func (o *Owner) Disown() { o.mu.Unlock() }

// Followed reports whether there are followers.
func (o *Owner) Followed() bool { return o.followers.Load() > 0 }

// Offered holds a token for a follower that is to become the poll owner. It is nil before Init.
func (o *Owner) Offered() <-chan struct{} { return o.offer }

// Offer asks a follower to become the poll owner; the caller has disowned the role before, so that whoever takes the offer
// finds it free. False: nobody follows any more.
//
// Each follower either takes the token, or first leaves the followers: then whoever put the token sees that nobody
// follows and takes it back, or the last follower does.
func (o *Owner) Offer() bool {
	select {
	case o.offer <- struct{}{}:
	default: // there is one that has not been taken yet
	}
	if o.Followed() {
		return true
	}
	select {
	case <-o.offer:
		return false
	default:
		return true // somebody took it
	}
}
