// Package paths returns the locations of the driver's sockets and state, for the driver and for programs
// that attach to it.
package paths

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

const (
	// SocketVariable is the environment variable for the path of the driver's socket.
	SocketVariable = "SOFTVPI_SOCKET"
	// FunctionVariable is the environment variable for the name of the virtual function that a program is to have.
	FunctionVariable = "SOFTVPI_FUNCTION"
	// StateVariable is the environment variable for the driver's state directory.
	StateVariable = "SOFTVPI_STATE"
)

// functionsSuffix is what the directory of the sockets of virtual functions has behind the driver's socket.
const functionsSuffix = ".functions"

// MaxSocket is the maximum length of a unix socket's path in bytes, with its zero byte, on the most
// restrictive systems.
const MaxSocket = 104

// Socket returns the path of the driver's attach socket: SOFTVPI_SOCKET, else softvpi/driver.sock in
// XDG_RUNTIME_DIR, else in a directory of this user below the system's temporary directory.
func Socket() string {
	if p := os.Getenv(SocketVariable); p != "" {
		return p
	}
	return filepath.Join(runtimeDir(), "driver.sock")
}

// Attach returns the path of the socket by which a program attaches to the driver with the attach socket at socket: that of its
// virtual function, if SOFTVPI_FUNCTION names one. A socket that is a function's already stays.
func Attach(socket string) string {
	name := os.Getenv(FunctionVariable)
	if name == "" || filepath.Ext(filepath.Dir(socket)) == functionsSuffix {
		return socket
	}
	return Function(socket, name)
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

// Management returns the path of the management socket for the attach socket at socket.
func Management(socket string) string { return socket + ".admin" }

// ContainerSocket is the name of a container's socket in its directory, which is mounted into the container.
const ContainerSocket = "driver.sock"

// Container returns the path of the socket for the container of that number, from 0, of a driver with the attach socket at socket.
func Container(socket string, number int) string {
	return filepath.Join(socket+".containers", strconv.Itoa(number), ContainerSocket)
}

// FunctionContainer returns the path of the socket for a container that has the virtual function of that name: in a directory of its
// own, as the containers' by number are, since that is what a container mounts and a driver that starts anew finds again.
func FunctionContainer(socket, name string) string {
	return filepath.Join(socket+".containers", "vf-"+name, ContainerSocket)
}

// Functions returns the directory of the sockets of virtual functions.
func Functions(socket string) string { return socket + functionsSuffix }

// Function returns the path of the socket for programs of the virtual function of that name, of a driver with the attach socket at
// socket.
func Function(socket, name string) string { return filepath.Join(Functions(socket), name+".sock") }

// FunctionAt returns of which virtual function a path is that of the socket.
func FunctionAt(socket, path string) (name string, ok bool) {
	name, ok = strings.CutSuffix(filepath.Base(path), ".sock")
	return name, ok && path == Function(socket, name)
}

// Fabric returns the path of the socket for management datagrams of the named fabric: fabric-NAME.sock
// next to the driver's socket.
func Fabric(name string) string { return filepath.Join(runtimeDir(), "fabric-"+name+".sock") }

// Config returns the default path of the driver's configuration file: softvpi/driver.json in
// XDG_CONFIG_HOME or .config of the user's home. It is empty if the system has no such directory.
func Config() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "softvpi", "driver.json")
}

// Room creates the directory of a socket to be listened on, and returns why it must not be used, as Own
// does.
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

// temporaryDir returns this user's directory below the system's temporary one.
func temporaryDir() string {
	return filepath.Join(os.TempDir(), "softvpi-"+strconv.Itoa(os.Getuid()))
}
