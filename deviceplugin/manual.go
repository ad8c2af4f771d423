package main

import (
	"io"

	"github.com/softvpi/softvpi/internal/manual"
)

// writeManual writes the manual page of the program, of the table that parses its command line.
func writeManual(to io.Writer, version string) error {
	var o options
	_, err := manual.Page{
		Name: programName, Summary: "offer the SoftVPI driver of a node to the pods of Kubernetes", Version: version,
		Synopsis: []string{programName + " [options]"},
		Sections: []manual.Section{
			{Title: "DESCRIPTION", Text: []string{
				"Offers the driver that runs on a node to its pods by kubelet's device plugin API (v1beta1): as " + Shared + " as many " +
					"devices as the driver has sockets for containers (softvpi up --containers), which share its adapters; as " + Exclusive +
					" its virtual functions with RDMA, each for one container alone. A container asks for one device of one of them.",
				"Devices are healthy while the driver is ready, as softvpi health says, and a virtual function's link is up. The program waits for a driver and for kubelet, and " +
					"registers again when kubelet starts anew.",
			}},
			{Title: "OPTIONS", Terms: manual.Options(o.flags(), map[string]string{"socket": "that of the user's own driver"})},
			{Title: "EXIT STATUS", Terms: []manual.Term{{Name: "0", Text: "It was stopped by a signal."},
				{Name: "1", Text: "It cannot work, such as without kubelet's directory."}, {Name: "2", Text: "The command line is wrong."}}},
			{Title: "SEE ALSO", Text: []string{"softvpi(1), softvpi-cdi-generate(1)"}},
		},
	}.WriteTo(to)
	return err
}
