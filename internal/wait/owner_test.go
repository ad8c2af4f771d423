package wait

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestOwner_OffersItsRoleOnlyToFollowers: without a follower an offer is taken back; with one it stays until it is taken, or
// until the last follower leaves, who then knows of it.
func TestOwner_OffersItsRoleOnlyToFollowers(t *testing.T) {
	var o Owner
	if o.Follow(); o.Unfollow() || o.Offered() != nil {
		t.Error("there are offers before Init")
	}
	o.Init()
	o.Own()
	if o.Disown(); o.Offer() || len(o.offer) != 0 {
		t.Error("an offer to nobody")
	}
	o.Follow()
	o.Follow()
	for range 2 {
		if !o.Offer() || len(o.offer) != 1 {
			t.Fatal("no offer to a follower")
		}
	}
	if o.Unfollow() {
		t.Error("one of two followers takes the offer back")
	}
	if !o.Unfollow() || len(o.offer) != 0 || o.Followed() {
		t.Error("the last follower does not take the offer back")
	}
}

// TestOwner_IsOneAtATime: a follower becomes the poll owner only if nobody is, and is no follower then.
func TestOwner_IsOneAtATime(t *testing.T) {
	var o Owner
	o.Init()
	o.Follow()
	o.Follow()
	if !o.Promote() || o.Promote() || o.TryOwn() {
		t.Error("not exactly one of two followers is the poll owner")
	}
	if o.Disown(); o.followers.Load() != 1 || !o.TryOwn() {
		t.Errorf("%d followers beside the poll owner, want 1", o.followers.Load())
	}
}

// TestOwner_EveryFollowerGetsWhatItWaitsFor: however the turns of many followers fall, whoever has what it wants hands the
// role on, so that all get what they wait for though only the poll owner takes anything.
func TestOwner_EveryFollowerGetsWhatItWaitsFor(t *testing.T) {
	const followers, rounds = 8, 2000
	var o Owner
	o.Init()
	var given [followers]atomic.Int32 // what the poll owner has taken for each
	var next int                      // the poll owner's
	attend := func(enough func() bool) {
		for {
			for !enough() {
				given[next%followers].Add(1)
				next++
			}
			o.Disown()
			if !o.Followed() || o.Offer() || !o.TryOwn() {
				return
			}
		}
	}
	var all sync.WaitGroup
	for i := range followers {
		all.Go(func() {
			for n := range int32(rounds) {
				enough := func() bool { return given[i].Load() > n }
				o.Follow()
				for {
					if o.Promote() { // also whoever took an offer and wants nothing any more: it hands the role on
						attend(enough)
						o.Follow()
					}
					if enough() {
						break
					}
					<-o.Offered()
				}
				if o.Unfollow() && o.TryOwn() {
					attend(func() bool { return true })
				}
			}
		})
	}
	all.Wait()
}
