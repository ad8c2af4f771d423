// Package lastwords keeps what remains of a driver that dies: in its state directory, the commands that programs gave it last and
// the traceback of the Go runtime. The next driver finds them. They are there after any death but the machine's: the system has
// them as soon as they are written.
package lastwords
