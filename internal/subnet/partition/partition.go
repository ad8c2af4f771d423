package partition

import (
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Membership says what kind of member a port is in a partition.
type Membership uint8

// The memberships: limited members communicate only with full ones (IBA 10.9.3).
const (
	limitedMember Membership = 1
	fullMember    Membership = 2
	bothMember    Membership = 3
)

// Who selects a group of ports by kind.
type Who uint8

// The groups of partitions.conf.
const (
	whoGUID     Who = iota // the one port with the GUID
	whoAll                 // ALL
	whoCAs                 // ALL_CAS
	whoSwitches            // ALL_SWITCHES
	whoRouters             // ALL_ROUTERS
	whoSelf                // SELF: the port of the subnet manager
)

// Member is one entry of a partition's list of ports.
type Member struct {
	Who  Who
	GUID uint64
	How  Membership
}

// GroupFlags are the properties of a multicast group in partitions.conf.
type GroupFlags struct {
	Rate, MTU, SL uint8
	Scopes        []uint8
	QKey          uint32
	HasQKey       bool
	TClass        uint8
	FlowLabel     uint32
}

// GroupSpec is a multicast group that is created together with a partition.
type GroupSpec struct {
	MGID  ib.GID
	Flags GroupFlags
}

// Partition is a partition as configured.
type Partition struct {
	Name    string
	Key     ib.PKey // 15 bits
	Index0  bool    // to be first in the tables
	IPoIB   bool    // has a broadcast group
	Flags   GroupFlags
	Members []Member
	Groups  []GroupSpec
}

// Config is all partitions. Parse and Default return one.
type Config struct{ List []Partition }

// defaultKey is the partition that always exists.
const defaultKey ib.PKey = 0x7fff

// Default returns what applies without a configuration: all ports are full members of the default
// partition, which has an IPoIB broadcast group.
func Default() *Config {
	return &Config{List: []Partition{{Name: "Default", Key: defaultKey, IPoIB: true, Flags: defaultFlags(),
		Members: []Member{{Who: whoAll, How: fullMember}}}}}
}

func defaultFlags() GroupFlags { return GroupFlags{Rate: 3, MTU: 4} }

func (m *Member) covers(guid uint64, t mad.NodeType, self bool) bool {
	switch m.Who {
	case whoGUID:
		return m.GUID == guid
	case whoAll:
		return true
	case whoCAs:
		return t == mad.NodeCA
	case whoSwitches:
		return t == mad.NodeSwitch
	case whoRouters:
		return t == mad.NodeRouter
	case whoSelf:
		return self
	}
	return false
}

// Keys returns the P_Keys of an end port, beginning with that for index 0. If several entries cover a
// port, the most specific one counts: its GUID before SELF, that before its kind, and that before ALL; of
// equals the last.
func (c *Config) Keys(guid uint64, t mad.NodeType, self, both bool) []ib.PKey {
	var keys []ib.PKey
	for i := range c.List {
		p := &c.List[i]
		how, rank := Membership(0), -1
		for k := range p.Members {
			m := &p.Members[k]
			if r := particular(m.Who); m.covers(guid, t, self) && r >= rank {
				how, rank = m.How, r
			}
		}
		if p.Key == defaultKey && self && how != bothMember {
			how = fullMember // all ports must be able to reach the administration
		}
		if how == bothMember && !both {
			how = fullMember
		}
		var mine []ib.PKey
		if how&fullMember != 0 {
			mine = append(mine, p.Key|0x8000)
		}
		if how&limitedMember != 0 {
			mine = append(mine, p.Key)
		}
		if p.Index0 {
			keys = slices.Insert(keys, 0, mine...)
		} else {
			keys = append(keys, mine...)
		}
	}
	return keys
}

func particular(w Who) int {
	switch w {
	case whoGUID:
		return 3
	case whoSelf:
		return 2
	case whoAll:
		return 0
	}
	return 1
}

// Fit changes as few entries of a table as possible to make it hold exactly the keys, and lengthens it if
// necessary; but if first, the first key is put first. false: it does not fit in room entries.
func Fit(table, keys []ib.PKey, first bool, room int) ([]ib.PKey, bool) {
	t := slices.Clone(table)
	for i, k := range t {
		if slices.Contains(keys, k) && !slices.Contains(t[:i], k) {
			continue
		}
		t[i] = 0
		for _, other := range keys { // the other kind of membership takes the place
			if k&0x7fff != 0 && other&0x7fff == k&0x7fff && !slices.Contains(t, other) && !slices.Contains(table[i+1:], other) {
				t[i] = other
				break
			}
		}
	}
	for i, k := range keys {
		if at := slices.Index(t, k); at >= 0 {
			if first && i == 0 && at != 0 {
				t[at], t[0] = t[0], k
			}
			continue
		}
		free := slices.Index(t, 0)
		if free < 0 {
			if len(t)+32 > (room+31)/32*32 {
				return t, false
			}
			free = len(t)
			t = append(t, make([]ib.PKey, 32)...)
		}
		if free >= room {
			return t, false
		}
		t[free] = k
		if first && i == 0 && free != 0 {
			t[free], t[0] = t[0], k
		}
	}
	return t, true
}

// Find returns the key of k's partition among a port's keys, or 0 if it is no member; full membership
// wins.
func Find(keys []ib.PKey, k ib.PKey) ib.PKey {
	found := ib.PKey(0)
	for _, x := range keys {
		if x&0x7fff == k&0x7fff && k&0x7fff != 0 && (found == 0 || x&0x8000 != 0) {
			found = x
		}
	}
	return found
}

// Shared finds a key that lets two ports communicate: one of the two memberships must be full. With want 0
// any partition will do, and the result is the first of a's keys that works. 0: they share none.
func Shared(a, b []ib.PKey, want ib.PKey) ib.PKey {
	for _, k := range a {
		if k&0x7fff == 0 || want != 0 && k&0x7fff != want&0x7fff {
			continue
		}
		for _, o := range b {
			if o&0x7fff == k&0x7fff && (k|o)&0x8000 != 0 {
				return k
			}
		}
	}
	return 0
}
