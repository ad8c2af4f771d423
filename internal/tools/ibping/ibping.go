package ibping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
)

// pings holds what was sent and what came back.
type pings struct {
	*ibdiag.Session
	to                  ibdiag.Route
	oui                 uint32
	flood               bool
	host                string
	sent, replied       uint64
	least, most, summed time.Duration
}

// Main runs ibping.
func Main(ctx context.Context, env tool.Env) int {
	count := uint64(1<<32 - 1)
	p := &pings{oui: openIB}
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<dest lid|guid>",
		About:     "Sends datagrams to a node on which ibping -S runs, and reports how long each takes.",
		Options: []ibdiag.Option{
			ibdiag.Number(&count, "count", 'c', "<num>", "stop after this many", 1, 1<<32-1),
			ibdiag.Flag(&p.flood, "flood", 'f', "one right after the other"),
			ibdiag.Number(&p.oui, "oui", 'o', "<val>", "OUI of the datagrams", 0, 1<<24-1),
			ibdiag.Serve,
		},
		Without: "DKy", Most: 1,
		Work: func(s *ibdiag.Session, args []string) (err error) {
			if s.Serving {
				name := hostAndDomain()
				return serve(s, classPing, p.oui, func(uint16) (string, bool) { return name, true })
			}
			if len(args) == 0 {
				return tool.Usagef("the address is missing; allowed: <dest lid|guid>, or -S")
			}
			p.Session = s
			if p.to, err = s.Resolve(args[0]); err != nil {
				return err
			}
			return p.run(count)
		},
	})
}

// run pings until it has sent count datagrams, or the user stops it. In both cases it ends with the
// report.
func (p *pings) run(count uint64) error {
	start := time.Now()
	for p.sent < count && p.Context.Err() == nil {
		p.sent++
		if err := p.once(); err != nil {
			return err
		}
		if p.flood {
			continue
		}
		p.Out.Flush()
		select {
		case <-time.After(time.Second):
		case <-p.Context.Done():
		}
	}
	p.report(time.Since(start))
	return nil
}

// once sends a datagram. If nobody answers it is lost, which is no error.
func (p *pings) once() error {
	start := time.Now()
	d, err := p.Port.Call(p.Context, p.to.Services(), request(classPing, 0, p.oui), p.Timing)
	took := time.Since(start)
	switch {
	case errors.Is(err, umad.ErrTimeout):
		p.Warnf("mad_rpc_rmpp", "_do_madrpc failed; dport (%s)", p.to)
		return nil
	case p.Context.Err() != nil:
		p.sent--
		return nil
	case err != nil:
		return err
	}
	host := ibdiag.Printable(text(&d.MAD))
	if p.replied == 0 {
		p.host, p.least = host, took
	}
	p.replied++
	p.least, p.most, p.summed = min(p.least, took), max(p.most, took), p.summed+took
	if !p.flood {
		p.Printf("Pong from %s (%s): time %s ms\n", host, p.to, ms(took))
	}
	return nil
}

func (p *pings) report(total time.Duration) {
	lost, mean := uint64(0), time.Duration(0)
	if p.sent > 0 {
		lost = (p.sent - p.replied) * 100 / p.sent
	}
	if p.replied > 0 {
		mean = p.summed / time.Duration(p.replied)
	}
	p.Printf("\n--- %s (%s) ibping statistics ---\n", p.host, p.to)
	p.Printf("%d packets transmitted, %d received, %d%% packet loss, time %d ms\n", p.sent, p.replied, lost, total.Milliseconds())
	p.Printf("rtt min/avg/max = %s/%s/%s ms\n", ms(p.least), ms(mean), ms(p.most))
}

// ms formats a time in milliseconds with three decimal places.
func ms(d time.Duration) string {
	us := d.Microseconds()
	return fmt.Sprintf("%d.%03d", us/1000, us%1000)
}
