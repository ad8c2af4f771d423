package main

import (
	"io"

	"github.com/softvpi/softvpi/internal/manual"
)

// writeManual writes the manual page of the program, of the table that parses its command line.
func writeManual(to io.Writer, version string) error {
	var o options
	_, err := manual.Page{
		Name: programName, Summary: "offer the SoftVPI driver of a node to the claims of Kubernetes", Version: version,
		Synopsis: []string{programName + " [options]"},
		Sections: []manual.Section{
			{Title: "DESCRIPTION", Text: []string{
				"Offers the driver that runs on a node by Dynamic Resource Allocation (resource.k8s.io/v1), as " + DriverName + ": " +
					"a device for each socket for containers (softvpi up --containers) and for each virtual function. Claims that are " +
					"prepared get a CDI specification.",
				"What is prepared is kept in a file, so that the program may end and start anew at any time. What a driver that starts " +
					"anew does not know of claims it is told again. It waits for a driver; while that is not ready, it offers nothing.",
			}},
			{Title: "OPTIONS", Terms: manual.Options(o.flags(), map[string]string{"socket": "", "node": ""})},
			{Title: "EXIT STATUS", Terms: []manual.Term{{Name: "0", Text: "It was stopped by a signal."},
				{Name: "1", Text: "It cannot work, such as without an API server."}, {Name: "2", Text: "The command line is wrong."}}},
			{Title: "SEE ALSO", Text: []string{"softvpi(1), softvpi-device-plugin(1)"}},
		},
	}.WriteTo(to)
	return err
}
