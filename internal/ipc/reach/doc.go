// Package reach gives a driver access to memory of a program that is not shared: by the system calls for
// memory of another process, or by a copier in the program, which executes what the driver writes to
// shared memory.
package reach
