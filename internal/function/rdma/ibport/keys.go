package ibport

import (
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
)

// Keys returns the partition table in force.
func (p *Port) Keys() []ib.PKey { return p.keys }

// setKeys puts the partition table in force, and reports whether it differs from the old one.
func (p *Port) setKeys(keys []ib.PKey) bool {
	if len(keys) == 0 {
		keys = []ib.PKey{ib.PKeyDefault} // until the subnet manager has set it (IBA 10.9.2)
	}
	if slices.Equal(keys, p.keys) {
		return false
	}
	p.keys = keys
	return true
}

// KeyIndex returns the row of a partition table with the partition of k: the key itself, or its
// counterpart with the other membership; row 0 if there is none.
func KeyIndex(keys []ib.PKey, k ib.PKey) uint32 {
	if i := slices.Index(keys, k); i >= 0 {
		return uint32(i)
	}
	if i := slices.IndexFunc(keys, func(have ib.PKey) bool { return k.Valid() && have.Base() == k.Base() }); i >= 0 {
		return uint32(i)
	}
	return 0
}

// Main returns the key of the partition that the port uses where nobody asks for one: the default partition, or of a virtual function
// that is not in it its first.
func (p *Port) Main() ib.PKey {
	k := p.MemberKey(ib.PKeyDefault)
	if k == 0 && p.share != nil {
		k = p.keys[0]
	}
	return k
}

// wanted returns the partition of paths that are asked for; 0: any of the port's.
func (p *Port) wanted() ib.PKey {
	if p.share == nil || p.share.AllKeys {
		return 0
	}
	return p.Main()
}

// MemberKey returns the port's own key in the partition of k, 0 if it is not a member.
func (p *Port) MemberKey(k ib.PKey) ib.PKey {
	if k.Valid() && len(p.keys) > 0 {
		if have := p.keys[KeyIndex(p.keys, k)]; have.Base() == k.Base() {
			return have
		}
	}
	return 0
}
