package paths

import "path/filepath"

// Cables returns the path of the socket at which adapters of other processes are plugged into the fabric with a name:
// cables-NAME.sock where the driver's socket is.
func Cables(name string) string { return filepath.Join(runtimeDir(), "cables-"+name+".sock") }
