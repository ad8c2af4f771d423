package ibping

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// What ibsysstat can request.
const (
	attrPing = 0x10
	attrHost = 0x11
	attrCPU  = 0x12
)

var sysstatAttributes = map[string]uint16{"ping": attrPing, "host": attrHost, "cpu": attrCPU}

// Sysstat runs ibsysstat.
func Sysstat(ctx context.Context, env tool.Env) int {
	oui := uint32(openIB)
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<dest lid|guid> [<op>]",
		About:     "Asks a node on which ibsysstat -S runs: whether it answers (ping), its name (host), its processors (cpu).",
		Options: []ibdiag.Option{
			ibdiag.Number(&oui, "oui", 'o', "<val>", "OUI of the datagrams", 0, 1<<24-1), ibdiag.Serve,
		},
		Without: "DKy", Most: 2,
		Work: func(s *ibdiag.Session, args []string) error {
			if s.Serving {
				return serve(s, classSysstat, oui, sysstat(processors()))
			}
			if len(args) == 0 {
				return tool.Usagef("the address is missing; allowed: <dest lid|guid> [<op>], or -S")
			}
			attribute := uint16(attrPing)
			if len(args) > 1 {
				a, ok := sysstatAttributes[args[1]]
				if !ok {
					return tool.Usagef("the operation is %q; allowed: ping, host, cpu", args[1])
				}
				attribute = a
			}
			to, err := s.Resolve(args[0])
			if err != nil {
				return err
			}
			return ask(s, to, attribute, oui)
		},
	})
}

// sysstat returns the answers for this machine.
func sysstat(cpus []string) func(uint16) (string, bool) {
	host, cpu := hostAndDomain(), fit(cpus)
	return func(attribute uint16) (string, bool) {
		switch attribute {
		case attrHost:
			return host, true
		case attrCPU:
			return cpu, true
		}
		return "", attribute == attrPing
	}
}

// fit returns as many lines as fit in one datagram.
func fit(lines []string) (all string) {
	for _, l := range lines {
		if len(all)+len(l) >= vendorDataLen {
			break
		}
		all += l
	}
	return all
}

func ask(s *ibdiag.Session, to ibdiag.Route, attribute uint16, oui uint32) error {
	d, err := s.Port.Call(s.Context, to.Services(), request(classSysstat, attribute, oui), s.Timing)
	if err != nil {
		return gone(s.Context, err, fmt.Sprintf("ibsystat to %s", to))
	}
	if status := binary.BigEndian.Uint16(d.MAD[4:]); status != 0 {
		return ibdiag.Failf("ibsystat to %s: MAD status 0x%x", to, status)
	}
	if attribute == attrPing {
		s.Printf("sysstat ping succeeded\n")
		return nil
	}
	for line := range strings.SplitSeq(text(&d.MAD), "\n") {
		s.Printf("%s\n", ibdiag.Printable(line))
	}
	return nil
}

// processors returns the lines that describe this machine's processors.
func processors() []string {
	f, err := os.Open("/proc/cpuinfo") // Linux
	if err != nil {
		return plainProcessors()
	}
	defer f.Close()
	var models, mhz []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(name) {
		case "model name":
			models = append(models, value)
		case "cpu MHz":
			mhz = append(mhz, value)
		}
	}
	if len(models) == 0 || len(mhz) != len(models) {
		return plainProcessors()
	}
	var list []string
	for i := range models {
		list = append(list, fmt.Sprintf("cpu %d: model %s MHZ %s\n", i, models[i], mhz[i]))
	}
	return list
}

// plainProcessors returns the lines for a machine that gives no details.
func plainProcessors() (list []string) {
	for i := range runtime.NumCPU() {
		list = append(list, fmt.Sprintf("cpu %d: model %s MHZ unknown\n", i, runtime.GOARCH))
	}
	return list
}
