// Package peer identifies the process at the other end of a unix socket by the system's word, and says
// whether it may be there. The mode of a socket's file is not enough for that: it can be changed, the
// directory above it can be opened to others, and between creation and chmod it is the process's umask that
// decides.
package peer

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
)

// Process is the process at the other end of a unix socket.
type Process struct {
	PID int // 0: the system does not tell, or this process cannot see it
	UID int
	// GIDs are its groups, the effective one first; supplementary ones only where the system tells.
	GIDs []int
}

// Owner reports whether the process is of this process's user, or root's.
func (p Process) Owner() bool { return p.UID == 0 || p.UID == os.Geteuid() }

// Audience is whom a socket is for.
type Audience uint8

// The audiences. Each one includes those before it.
const (
	Owner    Audience = iota // this process's user and root
	Group                    // members of this process's group
	Everyone                 // all users of the machine
)

var audiences = [...]string{"owner", "group", "everyone"}

// Audiences lists the names of the audiences.
const Audiences = "owner, group, everyone"

// ParseAudience returns the audience of that name, Owner for the empty one.
func ParseAudience(name string) (a Audience, ok bool) {
	for i, n := range audiences {
		if n == cmp.Or(name, audiences[Owner]) {
			return Audience(i), true
		}
	}
	return 0, false
}

func (a Audience) String() string {
	if int(a) < len(audiences) {
		return audiences[a]
	}
	return fmt.Sprintf("Audience(%d)", a)
}

// Mode is the mode of the socket's file.
func (a Audience) Mode() fs.FileMode {
	return [...]fs.FileMode{Owner: 0o600, Group: 0o660, Everyone: 0o666}[a]
}

// Admits returns why a process is not among the audience, nil if it is.
func (a Audience) Admits(p Process) error {
	if a == Everyone || p.Owner() {
		return nil
	}
	if a == Owner {
		return fmt.Errorf("user %d: allowed: user %d, who runs the driver, and root", p.UID, os.Geteuid())
	}
	own := os.Getegid()
	for _, g := range p.GIDs {
		if g == own {
			return nil
		}
	}
	return fmt.Errorf("user %d, not in group %d: allowed: user %d, who runs the driver, root, and members of that group", p.UID, own,
		os.Geteuid())
}
