package carrier

// Join has another member at a place, that of one that has left or the next one. Its link is down until SetLink says otherwise, and is
// then one that comes back. primary says that it is to be active whenever it can be.
func (c *Chooser) Join(i int, primary bool) {
	if i == len(c.members) {
		c.members = append(c.members, member{})
	}
	c.members[i] = member{known: true}
	if primary {
		c.primary = i
	}
}

// Leave takes a member out, as if its link had failed. Choose or Prove follows.
func (c *Chooser) Leave(i int) {
	c.members[i] = member{}
	if c.primary == i {
		c.primary = -1
	}
}
