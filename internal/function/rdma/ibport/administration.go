package ibport

import (
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/sa"
)

const (
	// offerLease is for how many seconds an address is registered, offerEvery how often the registration
	// is renewed.
	offerLease = 300
	offerEvery = 100 * time.Second
)

// Ask sends a request to the subnet administration. done is called with the answer, or at once if the
// request could not be made.
func (p *Port) Ask(now clock.Time, r sa.Request, done func(now clock.Time, answer *sa.Answer)) {
	t, err := p.client.Ask(now, r)
	if err != nil {
		done(now, &sa.Answer{Err: err})
		return
	}
	p.tickets[t] = done
}

// Expects reports whether an arrived MAD of the administration's class answers a request of this port.
func (p *Port) Expects(m []byte) bool { return p.client.Expects(m) }

// Receive handles an arrived MAD of the administration's class.
func (p *Port) Receive(now clock.Time, m []byte) { p.client.Receive(now, m) }

// Deliver passes answers on to those who asked, and reports whether there were any.
func (p *Port) Deliver(now clock.Time) (worked bool) {
	for n := p.client.Answers(p.told[:]); n > 0; n = p.client.Answers(p.told[:]) {
		worked = true
		for i := range p.told[:n] {
			t := p.told[i]
			done := p.tickets[t.Ticket]
			delete(p.tickets, t.Ticket)
			if done != nil {
				done(now, &t)
			}
		}
	}
	return worked
}

// Requests returns some of the requests to be sent, none if there are no more. They are valid until the
// next call.
func (p *Port) Requests() []sa.Datagram { return p.asked[:p.client.Transmit(p.asked[:])] }

// SetRepetition sets after which time and how often requests are retransmitted; 0: 1 s and 10. The error
// names the field.
func (p *Port) SetRepetition(timeout time.Duration, retries int) error {
	return p.client.SetRepetition(timeout, retries)
}

// Deadline returns when Advance must be called next.
func (p *Port) Deadline() clock.Time {
	return clock.Min(clock.Min(p.client.Deadline(), p.alias.due), clock.Min(p.renew, p.waits.Deadline()))
}

// Advance does what is due, and reports whether there was anything.
func (p *Port) Advance(now clock.Time) (worked bool) {
	if p.client.Deadline() <= now {
		p.client.Advance(now)
		worked = true
	}
	if p.alias.due <= now {
		p.askAliases(now)
		worked = true
	}
	if p.renew <= now {
		p.Offer(now)
		worked = true
	}
	return p.expire(now) || worked
}

// Renew makes the next Advance register the addresses, and ask for aliases.
func (p *Port) Renew() {
	p.renew = 0
	p.alias.again()
}

// Rest stops registrations until Renew, Offer or Resume.
func (p *Port) Rest() { p.renew = clock.Never }

// SetAddresses replaces the IP addresses by which programs refer to the port, and withdraws the old ones.
func (p *Port) SetAddresses(now clock.Time, ips []netip.Addr) {
	p.withdraw(now)
	p.ips = nil
	for _, ip := range ips {
		p.ips = append(p.ips, ip.Unmap().WithZone(""))
	}
}

// Offer registers the port's IP addresses at the subnet administration, so that others can find it by
// them.
func (p *Port) Offer(now clock.Time) {
	p.renew = clock.Never
	if !p.Active() || p.set.SMLID == 0 || len(p.ips) == 0 {
		return
	}
	p.renew = now.Add(offerEvery)
	for n, ip := range p.offered() {
		p.Ask(now, sa.Offer(ip, n, p.GID(), p.Main(), offerLease), func(_ clock.Time, answer *sa.Answer) {
			if answer.Err != nil && !errors.Is(answer.Err, sa.ErrSuperseded) { // taken back meanwhile
				p.log.Warn("the address cannot be found by others", "address", ip, "cause", answer.Err)
			}
		})
	}
}

// withdraw withdraws what Offer registered.
func (p *Port) withdraw(now clock.Time) {
	if !p.Active() || p.set.SMLID == 0 {
		return
	}
	for n := range p.offered() {
		p.Ask(now, sa.Withdraw(n, p.GID(), p.Main()), func(clock.Time, *sa.Answer) {})
	}
}

// offered returns as many of the addresses as can be registered.
func (p *Port) offered() []netip.Addr { return p.ips[:min(len(p.ips), sa.MaxATS)] }

// Depart withdraws what the port has registered at the subnet administration, and forgets what it knows,
// because its adapter is disabled.
func (p *Port) Depart(now clock.Time) {
	p.withdraw(now)
	p.returnAliases(now)
	p.renew = clock.Never
	for mgid, g := range p.groups {
		if g.known {
			p.Ask(now, sa.Leave(mgid, p.GID(), g.state), func(clock.Time, *sa.Answer) {})
		}
	}
	clear(p.groups)
	clear(p.paths)
	clear(p.names)
}
