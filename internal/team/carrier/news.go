package carrier

import "fmt"

// News is that a member's status or role has changed.
type News struct {
	Member int
	Status Status
	Role   Role
}

// String describes the news for people.
func (n News) String() string { return fmt.Sprintf("member %d is %v, %v", n.Member, n.Status, n.Role) }

// mostNews is how many are kept; of more the oldest are forgotten.
const mostNews = 256

// Notes keep what has changed of members, until somebody asks. At first all are disconnected, and back up another.
type Notes struct {
	last []News // by member
	news []News
}

// NotesOf returns the notes of so many members.
func NotesOf(members int) Notes { return Notes{last: make([]News, members)} }

// Begin says that another member is at a place: that of one that has left, or the next one.
func (n *Notes) Begin(member int) {
	if member == len(n.last) {
		n.last = append(n.last, News{})
	}
	n.last[member] = News{}
}

// Note keeps how a member is if that is new.
func (n *Notes) Note(member int, s Status, r Role) {
	now := News{member, s, r}
	if last := &n.last[member]; last.Status == s && last.Role == r {
		return
	}
	n.last[member] = now
	if len(n.news) == mostNews {
		n.news = n.news[:copy(n.news, n.news[1:])]
	}
	n.news = append(n.news, now)
}

// Take returns what has changed since the last call, in order.
func (n *Notes) Take() []News {
	news := n.news
	n.news = nil
	return news
}
