package umad

import "fmt"

// openTransport opens the port of a node of an ibsim without a Port, for programs that match answers to
// requests themselves, such as a subnet manager.
func openTransport(o IbsimOptions) (Transport, Device, error) {
	c, d, err := connectIbsim(o)
	if err != nil {
		return nil, Device{}, fmt.Errorf("ibsim %s: %w", o.where(), err)
	}
	return c, d, nil
}
