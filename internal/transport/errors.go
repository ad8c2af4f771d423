package transport

import (
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/command"
)

// Errors of an Engine's methods. An error about an argument's field is a *command.Error whose Detail names
// it.
var (
	// ErrNumbers means that no QP number is free.
	ErrNumbers = errors.New("no free QP number")
	// ErrNotIdle means that a QP has work in progress, so that Join cannot switch it between packets and
	// the local path; try again later.
	ErrNotIdle = errors.New("the QP is in the middle of a message")
	// ErrNotPeers means that two QPs are not connected to each other.
	ErrNotPeers = errors.New("the QPs are not connected to each other")
	// ErrFull means that a bounded queue of the engine is full.
	ErrFull = errors.New("queue is full")
)

func fieldError(field string, got any, want string) error {
	return command.Errorf(command.Invalid, "%s is %v, want %s", field, got, want)
}

// StateError says that a QP cannot go from one state to another, or that the attributes passed to Modify
// violate the table of IBA 11.2.5.2. It is reported inside a *command.Error of class State or Invalid.
type StateError struct {
	From, To command.QPState
	// Missing holds the required attributes that were not given, Extra those that the transition does not
	// accept; both are zero for a transition that does not exist.
	Missing, Extra command.QPMask
}

func (e *StateError) Error() string {
	switch {
	case e.Missing != 0:
		return fmt.Sprintf("transition %s to %s needs %s", stateName(e.From), stateName(e.To), maskNames(e.Missing))
	case e.Extra != 0:
		return fmt.Sprintf("transition %s to %s does not take %s", stateName(e.From), stateName(e.To), maskNames(e.Extra))
	}
	return fmt.Sprintf("no transition from %s to %s", stateName(e.From), stateName(e.To))
}

// Is makes a StateError match a *command.Error of its class.
func (e *StateError) Is(target error) bool {
	t, ok := target.(*command.Error)
	return ok && t.Detail == "" && t.Code == e.Code()
}

// Code is the class of the error for the client: Invalid for wrong attributes, State for a transition that
// does not exist.
func (e *StateError) Code() command.Code {
	if e.Missing|e.Extra != 0 {
		return command.Invalid
	}
	return command.State
}

var stateNames = [...]string{"Reset", "Init", "RTR", "RTS", "SQD", "SQE", "Error"}

func stateName(s command.QPState) string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint32(s))
}

var attributeNames = [...]string{
	"State", "Access", "PKeyIndex", "QKey", "Route", "MTU", "Timeout", "Retry", "RNRRetry", "MinRNRTimer",
	"RQPSN", "SQPSN", "InitiatorDepth", "ResponderResources", "DestQPN", "FlowControl", "SQDNotify",
}

func maskNames(m command.QPMask) string {
	s := ""
	for i, name := range attributeNames {
		if m&(1<<i) == 0 {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += name
	}
	if s == "" {
		return fmt.Sprintf("attribute bits %#x", uint32(m))
	}
	return s
}
