package mft

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
)

// pending reports whether the next start of the adapter changes a parameter.
func (d *configured) pending() bool { return slices.ContainsFunc(d.Parameters, api.Parameter.Pending) }

// show prints the configuration of a device like the manuals, with or without what the next start applies.
func (d *configured) show(w io.Writer, next bool) {
	fmt.Fprintf(w, "\nDevice #%d:\n----------\n\nDevice type:    %s\nPCI device:     %s\n\n", d.number, d.Type, d.Device)
	if !next {
		fmt.Fprintf(w, "%-30s %s\n", "Configurations:", "Current")
	} else {
		fmt.Fprintf(w, "%-30s %-10s %s\n", "Configurations:", "Current", "New")
	}
	for _, p := range d.Parameters {
		if !next {
			fmt.Fprintf(w, "   %-27s %s\n", p.Name, number(p.Current))
		} else {
			fmt.Fprintf(w, "   %-27s %-10s %s\n", p.Name, number(p.Current), number(p.New))
		}
	}
	fmt.Fprintln(w)
}

func number(n *uint64) string {
	if n == nil {
		return "N/A"
	}
	return strconv.FormatUint(*n, 10)
}
