// Package paths says where the driver keeps its socket and its state, for the
// driver and for every program that attaches to it.
package paths

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

const (
	// SocketVariable names the environment variable that holds the path of the
	// driver's socket.
	SocketVariable = "SOFTVPI_SOCKET"
	// StateVariable names the environment variable that holds the driver's
	// state directory.
	StateVariable = "SOFTVPI_STATE"
)

// MaxSocket is the longest path of a unix socket in bytes, with its zero byte, on the systems where that is shortest.
const MaxSocket = 104

// Socket returns the path of the driver's attach socket: SOFTVPI_SOCKET, else
// softvpi/driver.sock in XDG_RUNTIME_DIR, else a directory of this user below
// the system's temporary directory.
func Socket() string {
	if p := os.Getenv(SocketVariable); p != "" {
		return p
	}
	return filepath.Join(runtimeDir(), "driver.sock")
}

// State returns the directory of the driver's lock file and logs:
// SOFTVPI_STATE, else softvpi in XDG_STATE_HOME, else .local/state/softvpi in
// the user's home, else the directory of the socket.
func State() string {
	if p := os.Getenv(StateVariable); p != "" {
		return p
	}
	if p := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(p) {
		return filepath.Join(p, "softvpi")
	}
	if runtime.GOOS == "windows" {
		if p, err := os.UserCacheDir(); err == nil {
			return filepath.Join(p, "softvpi")
		}
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "softvpi")
	}
	return runtimeDir()
}

// Management returns the path of the management socket that belongs to the
// attach socket at socket.
func Management(socket string) string { return socket + ".admin" }

// Fabric returns the path of the socket of the management datagrams of a fabric with a name: fabric-NAME.sock where the
// driver's socket is.
func Fabric(name string) string { return filepath.Join(runtimeDir(), "fabric-"+name+".sock") }

// Config returns the path of the driver's configuration file where none is
// given: softvpi/driver.json in XDG_CONFIG_HOME or .config of the user's home.
// It is empty where the system names no such directory.
func Config() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "softvpi", "driver.json")
}

// Room makes the directory of a socket that is to be listened at, and says why none must be there, as Own does.
func Room(socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	return Own(socket)
}

func runtimeDir() string {
	if p := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(p) {
		return filepath.Join(p, "softvpi")
	}
	return temporaryDir()
}

// temporaryDir is this user's directory below the system's temporary one.
func temporaryDir() string {
	return filepath.Join(os.TempDir(), "softvpi-"+strconv.Itoa(os.Getuid()))
}
