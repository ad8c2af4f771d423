package umad

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/softvpi/softvpi/internal/umad/socket"
)

// The environment variables by which Open chooses the fabric. SoftVPI's own management service
// (socket.Variable) takes precedence; the other names are those of ibsim's own clients.
const (
	variableSocket = "IBSIM_SOCKNAME"    // base of a local server's socket names
	variableServer = "IBSIM_SERVER_NAME" // host of a server, over UDP
	variablePort   = "IBSIM_SERVER_PORT" // its port; default 7070
	variableHost   = "SIM_HOST"          // node to be
	variableIsSM   = "SIM_SET_ISSM"      // any value: be a port with a subnet manager
)

// ErrNoFabric says that the environment names no fabric.
var ErrNoFabric = errors.New("no InfiniBand fabric: set " + socket.Variable + ", " + variableSocket + ", " + variableServer + " or " +
	variableHost)

// Options say how to reach a port of a fabric.
type Options struct {
	Service ServiceOptions // used if its Socket is not empty
	Ibsim   IbsimOptions   // used otherwise
	Manager bool           // be a port with a subnet manager, which receives requests
	Serving bool           // answer requests of other classes
}

// FromEnvironment returns the fabric that the environment names. The error is ErrNoFabric, or says which
// variable is wrong.
func FromEnvironment() (o Options, err error) {
	if o.Service.Socket, o.Service.Node = socket.FromEnvironment(); o.Service.Socket != "" {
		return o, nil
	}
	o.Ibsim, err = ibsimFromEnvironment()
	return o, err
}

func ibsimFromEnvironment() (IbsimOptions, error) {
	o := IbsimOptions{Socket: os.Getenv(variableSocket), Server: os.Getenv(variableServer), Host: os.Getenv(variableHost)}
	if o.Socket == "" && o.Server == "" && o.Host == "" {
		return o, ErrNoFabric
	}
	_, o.IsSM = os.LookupEnv(variableIsSM)
	if s := os.Getenv(variablePort); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 65535-10 {
			return o, fmt.Errorf("%s is %q; allowed: a port from 1 to 65525", variablePort, s)
		}
		o.Port = n
	}
	return o, nil
}

// Open opens the port.
func (o Options) Open() (*Port, error) {
	if o.Service.Socket != "" {
		o.Service.Manager = o.Service.Manager || o.Manager
		return OpenService(o.Service)
	}
	o.Ibsim.IsSM = o.Ibsim.IsSM || o.Manager || o.Serving // ibsim passes requests only to subnet managers
	return OpenIbsim(o.Ibsim)
}

// Transport opens the port without a Port, for programs that match answers to requests themselves, such as
// a subnet manager.
func (o Options) Transport() (Transport, Device, error) {
	if o.Service.Socket != "" {
		o.Service.Manager = o.Service.Manager || o.Manager
		return openService(o.Service)
	}
	o.Ibsim.IsSM = o.Ibsim.IsSM || o.Manager || o.Serving
	return openTransport(o.Ibsim)
}

// Open opens the port of the fabric that the environment names.
func Open() (*Port, error) {
	o, err := FromEnvironment()
	if err != nil {
		return nil, err
	}
	return o.Open()
}
