package command

// ChannelKind says which events a channel carries.
type ChannelKind uint32

// The kinds of channels.
const (
	Completions  ChannelKind = iota + 1 // of the CQs created with it, one message per event
	Connections                         // of the CM ids assigned to it
	Asynchronous                        // of an adapter and of the program's objects on it
)

// CreateChannel creates a channel: its events are not taken with Events but have an end of their own, so
// that a program may wait for some events only.
type CreateChannel struct {
	Kind    ChannelKind
	Adapter uint32 // Asynchronous: of this adapter
}

// CMSetChannel directs the events of a CM id, and of the requests that it receives, to a channel from now
// on.
type CMSetChannel struct{ ID, Channel Handle }
