package command

// ChannelKind is what a channel brings.
type ChannelKind uint32

// The kinds of channels.
const (
	Completions  ChannelKind = iota + 1 // of the CQs that were made with it, one for each event
	Connections                         // of the CM ids that were given it
	Asynchronous                        // of an adapter and of the program's objects on it
)

// CreateChannel asks for a channel: events that are not taken with Events but come to
// an end of their own, so that a program may wait for some of them alone.
type CreateChannel struct {
	Kind    ChannelKind
	Adapter uint32 // Asynchronous: whose
}

// CMSetChannel has the events of a CM id, and of the requests that it takes, come to a
// channel from now on.
type CMSetChannel struct{ ID, Channel Handle }
