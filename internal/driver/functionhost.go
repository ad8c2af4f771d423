package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/ipoib/service"
)

// functionHost is who uses the Ethernet function of a virtual function: a network interface, or the card of a virtual machine. It stays
// while the function is another one for its programs, and while its adapter restarts, so that whoever has it keeps it.
type functionHost struct {
	owner uint32 // adapter
	place hostPlace
	end   hostside.End              // nil: it is front
	front *service.Front            // the network interface of an InfiniBand port's virtual function
	ports map[string]*service.Front // those of its virtual ports, by their connections
	made  fs.FileInfo               // the driver's socket, when it was made; nil: there is none
}

// lost reports whether the driver's socket is not at its path any more: nobody finds it there.
func (h *functionHost) lost() bool {
	if h.made == nil {
		return false
	}
	now, err := os.Lstat(h.place.socket())
	return err != nil || !os.SameFile(now, h.made)
}

// state says of a virtual machine's card whether anybody has its other side, or nobody can since the socket was removed. Other hosts
// have none.
func (h *functionHost) state() string {
	x, ok := h.end.(hostside.Attended)
	switch {
	case !ok:
		return ""
	case h.lost():
		return "lost"
	case x.Attended():
		return "attended"
	}
	return "waiting"
}

func (h *functionHost) close() error {
	if h.end == nil {
		for _, p := range h.ports {
			_ = p.Close()
		}
		return h.front.Close()
	}
	return h.end.Close()
}

// hostPlace is where a virtual function's host is. The zero value is none.
type hostPlace struct {
	kind  string // config.HostTAP and so on; empty: there is none
	at    string // name of the TAP, or path of the socket
	peer  string // path of the virtual machine's datagram socket; empty: the driver's with ".peer" behind it
	space string // network namespace in which a TAP is opened, by name or path; empty: the driver's
}

// word says what the host is, as the setting host= has it.
func (p hostPlace) word() string {
	if p.kind == "" {
		return ""
	}
	return p.kind + ":" + p.at
}

// remote is the path of the virtual machine's datagram socket; empty: there is none.
func (p hostPlace) remote() string {
	if p.kind != config.HostDatagram {
		return ""
	}
	return config.HostPeer(p.at, p.peer)
}

// socket is the path of the driver's socket; empty: there is none.
func (p hostPlace) socket() string {
	if p.kind == config.HostDatagram || p.kind == config.HostStream {
		return p.at
	}
	return ""
}

// tap is the name of the TAP; empty: there is none.
func (p hostPlace) tap() string {
	if p.kind == config.HostTAP {
		return p.at
	}
	return ""
}

// has are what no two hosts have: interfaces and sockets.
func (p hostPlace) has() (list []string) {
	switch p.kind {
	case config.HostTAP:
		return []string{"interface " + p.at}
	case config.HostDatagram:
		return []string{p.at, p.remote()}
	case config.HostStream:
		return []string{p.at}
	}
	return nil
}

// set applies one of the settings of a virtual function's host. check looks at them all.
func (p *hostPlace) set(name, value string) error {
	if value == "none" {
		value = ""
	}
	switch name {
	case "netns":
		if strings.Contains(value, "\x00") || len(value) > mostPath || !strings.HasPrefix(value, "/") && strings.Contains(value, "/") {
			return api.Wrong(name, strconv.Quote(value), "a network namespace, by its name (ip netns) or the path of its file from the root; none")
		}
		p.space = value
	case "hostpeer":
		p.peer = value
	case "tap":
		if value == "" {
			if p.kind == config.HostTAP {
				p.kind, p.at = "", ""
			}
			return nil
		}
		if err := config.CheckTAP(name, value); err != nil {
			return err
		}
		p.kind, p.at = config.HostTAP, value
	case "host":
		if value != "" {
			if err := config.CheckHost(name, value); err != nil {
				return err
			}
		}
		p.kind, p.at, _ = strings.Cut(value, ":")
	}
	return nil
}

// mostPath is the longest path of a network namespace, as the system has it.
const mostPath = 4095

// check looks at the settings together; given are those that were given by name just now.
func (p *hostPlace) check(given map[string]bool) error {
	switch {
	case given["tap"] && given["host"]:
		return api.Wrong("tap, host", "both given", "one of them: tap=NAME is host=tap:NAME")
	case p.space != "" && p.kind != config.HostTAP:
		return api.Wrong("netns", strconv.Quote(p.space), "none without tap=")
	case p.peer != "" && p.kind != config.HostDatagram:
		return api.Wrong("hostpeer", strconv.Quote(p.peer), "none without host=datagram:PATH")
	case p.kind == config.HostDatagram:
		return config.CheckHostPeer("hostpeer", p.remote(), p.at)
	}
	return nil
}

// hostSettings are the settings that say who the host is.
var hostSettings = []string{"tap", "host", "hostpeer", "netns"}

// words are the settings of a host as they are kept, by name.
func (p hostPlace) words() map[string]string {
	w := map[string]string{"hostpeer": p.peer, "netns": p.space}
	if p.kind == config.HostTAP {
		w["tap"] = p.at
	} else {
		w["host"] = p.word()
	}
	return w
}

// give notes a setting. Of the host's, all are noted anew: it is one thing, whichever of them was given.
func (f *decision) give(name, value string) {
	given := map[string]string{}
	of := slices.Contains(hostSettings, name)
	for n, v := range f.given {
		if !of || !slices.Contains(hostSettings, n) {
			given[n] = v
		}
	}
	if !of {
		given[name] = value
	} else {
		for n, v := range f.host.words() {
			if v != "" {
				given[n] = v
			}
		}
	}
	f.given = given
}

// checkHost returns why a virtual function has no such host: somebody else has it. The caller holds changes.
func (d *Driver) checkHost(f *virtualFunction, p hostPlace) error {
	field, value, other := "host", p.word(), "an interface, and sockets, that no adapter and no other virtual function has"
	if p.kind == config.HostTAP {
		field, value, other = "tap", p.at, "an interface that no adapter and no other virtual function has"
	}
	var taken []string
	for i := range d.cfg.Adapters {
		a := &d.cfg.Adapters[i]
		kind, at := a.HostKind()
		taken = append(taken, hostPlace{kind: kind, at: at, peer: a.HostPeer}.has()...)
		taken = append(taken, "interface "+a.Interface, a.Datagram, a.Peer)
	}
	for _, o := range d.functions.list {
		if o != f {
			taken = append(taken, o.host.has()...)
		}
	}
	if slices.ContainsFunc(p.has(), func(x string) bool { return slices.Contains(taken, x) }) {
		return api.Wrong(field, strconv.Quote(value), other)
	}
	return nil
}

// hostFunction returns the Ethernet function of a virtual function that starts, with the host that it has; nil: it has none. The caller
// holds changes.
func (d *Driver) hostFunction(f *virtualFunction) (*device.EthernetConfig, error) {
	p := f.host
	if d.functions.hosted(f, nil); p.kind == "" || d.infiniBand(int(f.cfg.Owner)) {
		return nil, nil // what InfiniBand ports' have is IPoIB
	}
	if err := d.checkHost(f, p); err != nil {
		return nil, err
	}
	if t := d.ends[p.word()]; t != nil && (t.place != p || t.lost()) {
		d.closeHost(p) // it is to be in another namespace, or has another peer, or to be made anew
	}
	t := d.ends[p.word()]
	if t == nil {
		end, err := p.open()
		if err != nil {
			return nil, err
		}
		t = &functionHost{owner: f.cfg.Owner, place: p, end: end}
		if p.socket() != "" {
			t.made, _ = os.Lstat(p.socket())
		}
		d.ends[p.word()] = t
	}
	if err := p.admit(f.group); err != nil {
		return nil, err
	}
	d.functions.hosted(f, t)
	return &device.EthernetConfig{Host: t.end, Kept: true, Config: d.functionEthernet(f)}, nil
}

// admit lets the members of a group, who may attach programs, run the virtual machine too; empty: nobody but the driver's user.
func (p hostPlace) admit(group string) error {
	if p.socket() == "" {
		return nil
	}
	return admit(p.socket(), group)
}

// open opens a host's end.
func (p hostPlace) open() (end hostside.End, err error) {
	switch {
	case p.kind == config.HostDatagram:
		end, err = hostside.OpenDatagram(p.at, p.remote())
	case p.kind == config.HostStream:
		end, err = hostside.OpenStream(p.at)
	case p.space == "":
		end, err = hostside.OpenTAP(p.at)
	default:
		end, err = hostside.OpenTAPIn(p.space, p.at)
	}
	return end, p.refused(err)
}

// refused says which setting it is because of which a host's end does not open.
func (p hostPlace) refused(err error) error {
	const dir = "a path in a directory that there is, and in which the driver may make sockets"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: %s: %w", api.ErrUnsupported, p.kind, err)
	case p.space != "" && errors.Is(err, fs.ErrNotExist):
		return api.Wrong("netns", strconv.Quote(p.space), "a network namespace that there is, by name or path")
	case p.socket() == "":
		return err
	case errors.Is(err, fs.ErrExist):
		return api.Wrong("host", strconv.Quote(p.word()), fmt.Sprintf("a path that nobody has (%v)", err))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return api.Wrong("host", strconv.Quote(p.word()), fmt.Sprintf("%s (%v)", dir, err))
	}
	return err
}

// releaseHost gives a host's end back unless a virtual function has it. The caller holds changes.
func (d *Driver) releaseHost(p hostPlace) {
	for _, f := range d.functions.list {
		if f.host.word() == p.word() {
			return
		}
	}
	d.closeHost(p)
}

func (d *Driver) closeHost(p hostPlace) {
	t := d.ends[p.word()]
	if t == nil {
		return
	}
	delete(d.ends, p.word())
	if err := t.close(); err != nil {
		d.log.Warn("the host of a virtual function is not given back", "host", p.word(), "cause", err)
	}
}

// pruneHosts gives the ends back that no virtual function of an adapter has. The caller holds changes.
func (d *Driver) pruneHosts(owner uint32) {
	used := map[string]bool{}
	for _, f := range d.functions.of(owner) {
		used[f.host.word()] = true
	}
	for word, t := range d.ends {
		if t.owner == owner && !used[word] {
			d.closeHost(t.place)
		}
	}
}

// closeFunctionHosts gives all back, once the adapters are closed.
func (d *Driver) closeFunctionHosts() {
	d.changes.Lock()
	defer d.changes.Unlock()
	for _, t := range d.ends {
		d.closeHost(t.place)
	}
}
