package carrier

// Status is how a member is (WinOF 5.50, 4.2.8.3): connected if its link is up, disconnected if not, disabled if it is out of use.
type Status uint8

// The statuses.
const (
	Disconnected Status = iota
	Connected
	Disabled
)

var statusNames = [...]string{"Disconnected", "Connected", "Disabled"}

// String returns the manual's word for a status.
func (s Status) String() string { return statusNames[s] }

// Role is what a member does (WinOF 5.50, 4.2.8.3).
type Role uint8

// The roles.
const (
	Backup Role = iota // it sends nothing
	Active
)

var roleNames = [...]string{"Backup", "Active"}

// String returns the manual's word for a role.
func (r Role) String() string { return roleNames[r] }

// Status returns how a member is.
func (c *Chooser) Status(i int) Status {
	switch m := &c.members[i]; {
	case m.disabled:
		return Disabled
	case m.up:
		return Connected
	}
	return Disconnected
}
