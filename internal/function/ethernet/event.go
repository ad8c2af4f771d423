package ethernet

import "github.com/softvpi/softvpi/wire/eth"

// EventKind is what an event is about.
type EventKind uint8

// The events of a function that its host passes on, most of them by the names of the manuals' lists.
const (
	// RSSOff says that the function works without RSS: *RSS is 0.
	RSSOff EventKind = iota
	// ManyGroups says that there are more multicast addresses than MaxNumOfMCList: frames to any group pass from now on.
	ManyGroups
	// DuplicateMAC says that somebody else sends with the function's address. It is raised once a minute at most.
	DuplicateMAC
	// Woken says that a frame arrived that wakes the host.
	Woken
	// ReceiveTimeout says that the host has taken no frames of a receive queue for some time, though some wait.
	ReceiveTimeout
	// SendTimeout says that the port has taken no frames of a send queue for some time, though some wait.
	SendTimeout
)

// String returns the event's name.
func (k EventKind) String() string {
	return [...]string{"RSSOff", "ManyGroups", "DuplicateMAC", "Woken", "ReceiveTimeout", "SendTimeout"}[k]
}

// Event is something that a function's owner is to know.
type Event struct {
	Kind EventKind
	// MAC is the address that a DuplicateMAC event is about.
	MAC eth.MAC
	// Count is how many addresses there are, of a ManyGroups event, and Limit is MaxNumOfMCList.
	Count, Limit int
	// Pattern is the number of the pattern that has woken the host; -1: a magic packet.
	Pattern int
	// Queue is the number of the queue that a ReceiveTimeout or SendTimeout event is about.
	Queue int
}
