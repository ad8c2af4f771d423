package umad

import "fmt"

// OpenTransport opens the port of a node of an ibsim without a Port around it, for programs that match
// answers to requests themselves, such as a subnet manager.
func OpenTransport(o IbsimOptions) (Transport, Device, error) {
	c, d, err := connectIbsim(o)
	if err != nil {
		return nil, Device{}, fmt.Errorf("ibsim %s: %w", o.where(), err)
	}
	return c, d, nil
}
