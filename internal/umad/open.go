package umad

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// The environment by which Open chooses the fabric; the names are those of ibsim's own clients.
const (
	VariableSocket = "IBSIM_SOCKNAME"    // base of a local server's socket names
	VariableServer = "IBSIM_SERVER_NAME" // host of a server, over UDP
	VariablePort   = "IBSIM_SERVER_PORT" // its port; default 7070
	VariableHost   = "SIM_HOST"          // node to be
	VariableIsSM   = "SIM_SET_ISSM"      // any value: be a port with a subnet manager
)

// ErrNoFabric is an environment that names no fabric.
var ErrNoFabric = errors.New("no InfiniBand fabric: set " + VariableSocket + ", " + VariableServer + " or " + VariableHost)

// FromEnvironment is the fabric that the environment names. The error is ErrNoFabric, or names the variable.
func FromEnvironment() (IbsimOptions, error) {
	o := IbsimOptions{Socket: os.Getenv(VariableSocket), Server: os.Getenv(VariableServer), Host: os.Getenv(VariableHost)}
	if o.Socket == "" && o.Server == "" && o.Host == "" {
		return o, ErrNoFabric
	}
	_, o.IsSM = os.LookupEnv(VariableIsSM)
	if s := os.Getenv(VariablePort); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 65535-10 {
			return o, fmt.Errorf("%s is %q; allowed: a port from 1 to 65525", VariablePort, s)
		}
		o.Port = n
	}
	return o, nil
}

// Open opens the port of the fabric that the environment names.
func Open() (*Port, error) {
	o, err := FromEnvironment()
	if err != nil {
		return nil, err
	}
	return OpenIbsim(o)
}
