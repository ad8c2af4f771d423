// Package healing decides when a part of an adapter is stuck and is to be restarted: the health checker and the self-healing
// manager of WinOF 5.50, 4.10.1. It is a pure engine: it is told the time and how far the parts have come, and answers which
// sensors have found an error, and what is to be done about it.
package healing

import (
	"fmt"
	"strings"
)

// Sensor is one sensor, by its bit in the masks SHMPResetActiveSensorsMask and SHSensorsDumpMask, or a set of them.
type Sensor uint32

// The sensors. The first five are WinOF's (WinOF 5.50, 4.10.1.1.1.1). The others watch what the event lists of the manuals name
// without a sensor (WinOF-2 1.21, 5.5); their bits are chosen here.
const (
	SendHardware      Sensor = 0x00000008 // the wire takes none of the packets that wait for it
	SendSoftware      Sensor = 0x00000010 // requests are complete, and nobody hands the completions over
	ReceiveSoftware   Sensor = 0x00000040 // received frames wait, and the host takes none
	ReceiveCompletion Sensor = 0x00010000 // the link or the host's end failed to receive
	SendCompletion    Sensor = 0x00020000 // the link or the host's end failed to send
	EventQueue        Sensor = 0x00100000 // an event of a completion queue is due and is not raised
	Command           Sensor = 0x00200000 // a command of a program does not return
	Health            Sensor = 0x00400000 // the port's loop has work and does not turn
	Internal          Sensor = 0x00800000 // an engine has broken one of its own rules
)

const sensors = 9

// All are the sensors in the order of their bits.
var All = [sensors]Sensor{
	SendHardware, SendSoftware, ReceiveSoftware, ReceiveCompletion, SendCompletion, EventQueue, Command, Health, Internal,
}

// names are what sensors are called, in the words of WinOF's table where it has them.
var names = map[Sensor]string{
	SendHardware:      "Lack of progress in hardware for send queues",
	SendSoftware:      "Lack of progress in software for send queues",
	ReceiveSoftware:   "Lack of progress in software for receive queues",
	ReceiveCompletion: "Receive completion error",
	SendCompletion:    "Send completion error",
	EventQueue:        "Event queue stuck",
	Command:           "Command time-out",
	Health:            "Health counter",
	Internal:          "Internal error",
}

// String returns the name of one sensor, or the mask of several.
func (s Sensor) String() string {
	if name, ok := names[s]; ok {
		return name
	}
	return s.Mask()
}

// Mask returns the sensors as the manual prints masks, 0x00000008.
func (s Sensor) Mask() string { return fmt.Sprintf("0x%08x", uint32(s)) }

// Key returns a sensor's name as a word for counters and files, "send-completion-error".
func (s Sensor) Key() string { return strings.ReplaceAll(strings.ToLower(s.String()), " ", "-") }

// looks returns how many looks without progress are an error if most is the configured number: sends in software take twice as
// many (WinOF 5.50, 4.10.1.1.1.1), and errors none.
func (s Sensor) looks(most int) int {
	switch s {
	case SendSoftware:
		return 2 * most
	case ReceiveCompletion, SendCompletion, Internal:
		return 0
	}
	return most
}
