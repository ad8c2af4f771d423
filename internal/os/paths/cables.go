package paths

import "path/filepath"

// Cables returns the path of the socket through which adapters of other processes connect to the named
// fabric: cables-NAME.sock next to the driver's socket.
func Cables(name string) string { return filepath.Join(runtimeDir(), "cables-"+name+".sock") }
