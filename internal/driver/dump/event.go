package dump

import "github.com/softvpi/softvpi/internal/catalogue"

// Event is an event that causes a set of state dump files (WinOF-2 1.21, table 19; WinOF 5.50, 6.9).
type Event struct {
	// Name is the type of the event as the manuals print it.
	Name string
	// Tag is its letter in the names of files.
	Tag string
	// Generations are those whose manual has the event.
	Generations catalogue.Generation
	// Key is the key of the WinOF-2 driver that decides about it, and When the value with which a dump is made; "": always.
	Key  string
	When uint64
	// Fatal says that the event DumpAfterError tells of the dump.
	Fatal bool
}

// The events. Those of WinOF-2 need MstDumpMode too, and the states of a WinOF port follow DumpModeFlags.
var (
	CommandError = Event{Name: "CMD_ERR", Tag: "c", Generations: catalogue.MLX5, Fatal: true}
	EQStuck      = Event{Name: "EQ_STUCK", Tag: "e", Generations: catalogue.MLX5, Key: "DisableDumpOnEqStuck", Fatal: true}
	SendCQStuck  = Event{Name: "TXCQ_STUCK", Tag: "t", Generations: catalogue.MLX5, Key: "DisableDumpOnTxCqStuck", Fatal: true}
	RecvCQStuck  = Event{Name: "RXCQ_STUCK", Tag: "r", Generations: catalogue.MLX5, Key: "DisableDumpOnRxCqStuck", Fatal: true}
	PortDown     = Event{Name: "PORT_STATE", Tag: "p", Generations: catalogue.Both, Key: "EnableDumpOnPortDown", When: 1}
	PortUnknown  = Event{Name: "PORT_STATE", Tag: "p", Generations: catalogue.Both, Key: "EnableDumpOnUnknownLink", When: 1}
	PortUp       = Event{Name: "PORT_STATE", Tag: "p", Generations: catalogue.MLX4}
	OnRequest    = Event{Name: "ON_OID", Tag: "o", Generations: catalogue.MLX5}
	OnControl    = Event{Name: "ON_IOCTL", Tag: "u", Generations: catalogue.MLX4}
)
