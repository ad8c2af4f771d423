package ibport

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// offerLease is for how long an address is offered, offerEvery how often that is said again.
	offerLease = 300
	offerEvery = 100 * time.Second
)

// Ask asks the subnet administration. done is called with the answer; where the request could not be
// made, at once.
func (p *Port) Ask(now clock.Time, r sa.Request, done func(now clock.Time, answer *sa.Answer)) {
	t, err := p.client.Ask(now, r)
	if err != nil {
		done(now, &sa.Answer{Err: err})
		return
	}
	p.tickets[t] = done
}

// Receive takes a MAD of the administration's class that arrived.
func (p *Port) Receive(now clock.Time, m []byte) { p.client.Receive(now, m) }

// Deliver passes answers on to who asked, and reports whether there were any.
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

// Requests are some of those that are to be sent, none where there are no more. They stand until the next call.
func (p *Port) Requests() []sa.Datagram { return p.asked[:p.client.Transmit(p.asked[:])] }

// SetRepetition has requests sent again after that time, so often; 0: 1 s and 10. The error names the field.
func (p *Port) SetRepetition(timeout time.Duration, retries int) error {
	return p.client.SetRepetition(timeout, retries)
}

// Deadline is when Advance is wanted next.
func (p *Port) Deadline() clock.Time {
	return clock.Min(p.client.Deadline(), clock.Min(p.renew, p.waits.Deadline()))
}

// Advance does what is due, and reports whether there was anything.
func (p *Port) Advance(now clock.Time) (worked bool) {
	if p.client.Deadline() <= now {
		p.client.Advance(now)
		worked = true
	}
	if p.renew <= now {
		p.Offer(now)
		worked = true
	}
	return p.expire(now) || worked
}

// Renew has the next Advance offer the addresses.
func (p *Port) Renew() { p.renew = 0 }

// Rest ends the offers until Renew, Offer or Resume.
func (p *Port) Rest() { p.renew = clock.Never }

// SetAddresses replaces the IP addresses by which programs call the port, and ends what was offered.
func (p *Port) SetAddresses(now clock.Time, ips []netip.Addr) {
	p.withdraw(now)
	p.ips = nil
	for _, ip := range ips {
		p.ips = append(p.ips, ip.Unmap().WithZone(""))
	}
}

// Offer says at the subnet administration which IP addresses the port has, so that others find it by them.
func (p *Port) Offer(now clock.Time) {
	p.renew = clock.Never
	if !p.Active() || p.set.SMLID == 0 || len(p.ips) == 0 {
		return
	}
	p.renew = now.Add(offerEvery)
	for n, ip := range p.offered() {
		p.Ask(now, sa.Offer(ip, n, p.GID(), p.MemberKey(ib.PKeyDefault), offerLease), func(_ clock.Time, answer *sa.Answer) {
			if answer.Err != nil {
				p.log.Warn("the address cannot be found by others", "address", ip, "cause", answer.Err)
			}
		})
	}
}

// withdraw ends what Offer said.
func (p *Port) withdraw(now clock.Time) {
	if !p.Active() || p.set.SMLID == 0 {
		return
	}
	for n := range p.offered() {
		p.Ask(now, sa.Withdraw(n, p.GID(), p.MemberKey(ib.PKeyDefault)), func(clock.Time, *sa.Answer) {})
	}
}

// offered are the addresses that there is room for.
func (p *Port) offered() []netip.Addr { return p.ips[:min(len(p.ips), sa.MaxATS)] }

// Depart takes back what the port has said at the subnet administration, and forgets what it knows: its adapter is disabled.
func (p *Port) Depart(now clock.Time) {
	p.withdraw(now)
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
