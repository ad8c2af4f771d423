package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad/server"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

type fabricCmd struct {
	Run      fabricRunCmd      `cmd:"" help:"Run the nodes of a netlist, and let programs with ibsim's preload library attach."`
	Env      fabricEnvCmd      `cmd:"" help:"Print commands that set the environment of unmodified InfiniBand tools: eval \"$(softvpi fabric env --node hca1)\"."`
	Do       fabricDoCmd       `cmd:"" help:"Make a running fabric execute a command, such as unlink sw1[7]; the command help lists all."`
	Generate fabricGenerateCmd `cmd:"" help:"Print the netlist of a star, fat tree, torus or dragonfly."`
}

type fabricRunCmd struct {
	Netlist string `arg:"" help:"Netlist as printed by ibnetdiscover or read by ibsim, or a JSON object that describes an Ethernet and an InfiniBand fabric; - is standard input."`
	Name    string `default:"${ibsimName}" help:"Base of the socket names, which programs set as IBSIM_SOCKNAME (default: $$IBSIM_SOCKNAME, else ${ibsimDefault})."`
	UDP     string `name:"udp" placeholder:"ADDR:PORT" help:"Serve over UDP instead of local sockets; programs set IBSIM_SERVER_NAME and IBSIM_SERVER_PORT. Anyone who can reach the address may attach."`
	Cables  string `placeholder:"ADDR:PORT" help:"Let adapters of other hosts plug in over UDP at this address of the machine (in the configuration of their driver: \"fabric\": {\"connect\": \"udp://ADDR:PORT\"}). Without --cable-key anyone who can reach the address may."`
	Key     string `name:"cable-key" placeholder:"FILE" help:"File with a key that the drivers of --cables must have too."`
	Seed    uint64 `help:"Seed of the random faults (default: a different one each time)."`
	Timing  bool   `help:"Make data packets take as long as their links would: width, speed and length of the cables (default: as fast as the machine can)."`
	SM      bool   `name:"sm" help:"Run a subnet manager in the fabric, at its first switch."`
	SMDir   string `name:"sm-dir" env:"OSM_CACHE_DIR" placeholder:"DIR" help:"Directory where the subnet manager of --sm keeps the LIDs and registrations of ports from run to run (default: they are not kept)."`
	Console bool   `help:"Take commands from standard input, one per line."`
}

func (c fabricRunCmd) Run(s *session) error {
	ctx, stop := asService(s.ctx)
	defer stop()
	if c.Console && c.Netlist == "-" {
		return tool.Usagef("--console with the netlist on the standard input; allowed: the netlist in a file")
	}
	if !c.SM {
		c.SMDir = ""
	}
	files, err := service.In(c.SMDir)
	if err != nil {
		return tool.Usagef("--sm-dir: %v; allowed: a directory that there is", err)
	}
	at, key, err := c.overUDP()
	if err != nil {
		return err
	}
	t, file, err := c.read(s)
	if err != nil {
		return err
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	tell, printTold := s.told()
	network, err := c.network(file, tell)
	if err != nil {
		return err
	}
	if file != nil && file.IdleLACP() {
		fmt.Fprintln(s.env.Stderr, "fabric run: lacp has no effect where no host has several links (topology.bundle, or topology.links)")
	}
	listener, where, err := c.listen()
	if err != nil {
		return err
	}
	r := live.New(fabric.New(t, rand.New(rand.NewPCG(c.Seed, 0)).Uint64), live.Options{Timing: c.Timing, Ethernet: network})
	defer r.Close()
	var udp *live.UDP
	if at.IsValid() {
		if udp, err = r.ListenUDP(at, key); err != nil {
			return err
		}
	}
	datagrams, err := c.serveDatagrams(r)
	if err != nil {
		return err
	}
	defer datagrams.Close()
	adapters, switches, routers, links := t.Counts()
	fmt.Fprintf(s.env.Stdout, "fabric       %d channel adapters, %d switches, %d routers, %d links\n", adapters, switches, routers, links)
	c.describe(s, network)
	cables, err := c.cables()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.env.Stdout, "listening    %s\n", where)
	if at := datagrams.Path(); at != "" {
		fmt.Fprintf(s.env.Stdout, "datagrams    %s\n", at)
	}
	if cables != nil {
		fmt.Fprintf(s.env.Stdout, "cables       %s\n", cables.Addr())
	}
	if udp != nil {
		fmt.Fprintf(s.env.Stdout, "cables       %s%v\n", cable.Scheme, udp.Addr())
	}
	go printTold(ctx)
	sim := ibsim.NewServer(r)
	if c.Console {
		go console(s, sim)
	}
	return c.serve(ctx, r, t, sim, listener, sockets{cables, udp}, files)
}

// serve serves the fabric in all ways until ctx ends or one of them fails.
func (c fabricRunCmd) serve(ctx context.Context, r *live.Rack, t *topology.Topology, sim *ibsim.Server, listener ibsim.Listener,
	cables sockets, files service.Files) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var work sync.WaitGroup
	if cables.local != nil {
		work.Go(func() {
			if err := r.Serve(ctx, cables.local); err != nil {
				stop(err)
			}
		})
	}
	if cables.udp != nil {
		work.Go(func() { cables.udp.Serve(ctx) })
	}
	if c.SM {
		work.Go(func() {
			cfg := subnet.Config{Virtual: subnet.VirtualEnable}
			if err := r.Manage(ctx, live.ManagerPlace(t), service.Config{Files: files, Subnet: cfg}); err != nil {
				stop(err)
			}
		})
	}
	err := sim.Serve(ctx, listener)
	failed := context.Cause(ctx)
	stop(nil)
	work.Wait()
	if err == nil && failed != nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	return err
}

// sockets are where adapters are plugged in; nil: not offered.
type sockets struct {
	local *net.UnixListener
	udp   *live.UDP
}

// overUDP returns where adapters of other hosts are plugged in, and the key that they must know; the
// address is invalid if the options give none.
func (c fabricRunCmd) overUDP() (at netip.AddrPort, key []byte, err error) {
	if c.Cables == "" {
		if c.Key != "" {
			err = tool.Usagef("--cable-key without --cables; allowed: both")
		}
		return at, nil, err
	}
	if at, err = netip.ParseAddrPort(c.Cables); err != nil {
		return at, nil, tool.Usagef("--cables is %q; allowed: an address of this machine and a port, such as 192.0.2.1:%d or [::]:%d",
			c.Cables, cable.DefaultPort, cable.DefaultPort)
	}
	if c.Key != "" {
		if key, err = cable.ReadKey(c.Key); err != nil {
			return at, nil, tool.Usagef("--cable-key: %s", err)
		}
	}
	return at, key, nil
}

// cables listens for adapters of other processes, if there are local sockets.
func (c fabricRunCmd) cables() (*net.UnixListener, error) {
	if c.UDP != "" || runtime.GOOS != "linux" {
		return nil, nil
	}
	return live.Listen(paths.Cables(c.Name), 0o600)
}

// serveDatagrams serves programs that use libibumad, if there are local sockets.
func (c fabricRunCmd) serveDatagrams(r *live.Rack) (*server.Server, error) {
	if c.UDP != "" || runtime.GOOS != "linux" {
		return nil, nil
	}
	d, err := server.Listen(socket.Path(c.Name), r)
	if err != nil {
		return nil, err
	}
	r.Attend(d)
	return d, nil
}

// console executes commands from the standard input until it ends.
func console(s *session, sim *ibsim.Server) {
	lines := bufio.NewScanner(s.env.Stdin)
	for lines.Scan() {
		answer, err := sim.Command(lines.Text())
		if err != nil {
			s.env.Errorf("%s", err)
			continue
		}
		fmt.Fprint(s.env.Stdout, answer)
	}
}

// fabricDoCmd sends a command to a fabric that runs in another process.
type fabricDoCmd struct {
	Name    string   `default:"${ibsimName}" help:"Name of the fabric (default: $$IBSIM_SOCKNAME, else ${ibsimDefault})."`
	Command []string `arg:"" passthrough:"" help:"The command with its arguments."`
}

func (c fabricDoCmd) Run(s *session) error {
	line := ""
	for _, w := range c.Command {
		if strings.Contains(w, `"`) {
			return tool.Usagef("argument %q; allowed: words without quotes", w)
		}
		line += ` "` + w + `"`
	}
	answer, err := ibsim.Do(c.Name, line)
	var refused *ibsim.CommandError
	switch {
	case errors.As(err, &refused):
		return tool.Usagef("%s", refused)
	case errors.Is(err, ibsim.ErrNoServer):
		return fmt.Errorf("%s: %w; start one with: softvpi fabric run --name %s NETLIST", c.Name, err, c.Name)
	case err != nil:
		return err
	}
	fmt.Fprint(s.env.Stdout, answer)
	return nil
}

func (c fabricRunCmd) listen() (ibsim.Listener, string, error) {
	if c.UDP != "" {
		at, err := netip.ParseAddrPort(c.UDP)
		if err != nil {
			return nil, "", tool.Usagef("--udp is %q; allowed: an address and a port, such as 127.0.0.1:%d", c.UDP, ibsim.DefaultPort)
		}
		l, err := ibsim.ListenUDP(at)
		return l, fmt.Sprintf("IBSIM_SERVER_NAME=%s IBSIM_SERVER_PORT=%d", at.Addr(), at.Port()), err
	}
	if c.Name == "" || len(c.Name) > 64 || strings.ContainsAny(c.Name, "\x00 ") {
		return nil, "", tool.Usagef("--name is %q; allowed: 1 to 64 characters without spaces", c.Name)
	}
	l, err := ibsim.ListenLocal(c.Name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, "", fmt.Errorf("another process serves a fabric under the name %s; choose another name (--name)", c.Name)
	}
	return l, "IBSIM_SOCKNAME=" + c.Name, err
}

// read reads what is to run: InfiniBand nodes, and what the file says if it is no netlist.
func (c fabricRunCmd) read(s *session) (*topology.Topology, *scenario.Fabric, error) {
	text, name, err := c.text(s)
	if err != nil {
		return nil, nil, err
	}
	if b := bytes.TrimLeft(text, " \t\r\n"); len(b) > 0 && b[0] == '{' {
		f, err := scenario.ReadFabric(name, text)
		if err != nil {
			return nil, nil, tool.Usagef("%v", err)
		}
		if f.InfiniBand == nil {
			return new(topology.Topology), f, nil
		}
		return f.InfiniBand, f, nil
	}
	t, err := topology.ReadNetlist(bytes.NewReader(text))
	if err != nil {
		return nil, nil, tool.Usagef("%s: %v", name, err)
	}
	return t, nil, nil
}

// text returns what the file contains, and its name.
func (c fabricRunCmd) text(s *session) ([]byte, string, error) {
	if c.Netlist == "-" {
		b, err := inputfile.ReadFrom(s.ctx, s.env.Stdin, "the standard input", inputfile.Net)
		if err != nil {
			return nil, "-", notRead(s.ctx, err)
		}
		return b, "-", nil
	}
	f, err := inputfile.Open(c.Netlist, inputfile.Net)
	if err != nil {
		return nil, c.Netlist, tool.Usagef("netlist: %v", err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, c.Netlist, tool.Usagef("%s: %v", c.Netlist, err)
	}
	return b, c.Netlist, nil
}

// notRead returns why the standard input could not be read: because the user ended the command, or because of what is in it.
func notRead(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return tool.Usagef("netlist: %v", err)
}

type fabricGenerateCmd struct {
	rateFlags `embed:""`
	Star      generateStarCmd      `cmd:"" help:"One switch."`
	FatTree   generateFatTreeCmd   `cmd:"" help:"Two or three levels of switches with full bisection."`
	Torus     generateTorusCmd     `cmd:"" help:"A ring, torus or hypertorus of switches."`
	Dragonfly generateDragonflyCmd `cmd:"" help:"Groups of switches, all connected to all, both inside a group and between groups."`
}

// rateFlags are the width and speed of all links.
type rateFlags struct {
	Width string `default:"4x" help:"Width of the links: 1x, 2x, 4x, 8x or 12x (default 4x)."`
	Speed string `default:"QDR" help:"Speed of the links: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR (default QDR)."`
}

func (c rateFlags) rate() (topology.Rate, error) { return parseRate(c.Width, c.Speed) }

func parseRate(width, speed string) (r topology.Rate, err error) {
	lanes, err := strconv.Atoi(strings.TrimSuffix(width, "x"))
	if r.Width = mad.WidthOf(lanes); err != nil || r.Width == 0 {
		return r, tool.Usagef("--width is %q; allowed: 1x, 2x, 4x, 8x, 12x", width)
	}
	s, ok := mad.ParseSpeed(strings.ToUpper(speed))
	if !ok {
		return r, tool.Usagef("--speed is %q; allowed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR", speed)
	}
	r.Speed = s
	return r, nil
}

// print prints a generated topology.
func (c rateFlags) print(s *session, generate func(topology.Rate) (*topology.Topology, error)) error {
	r, err := c.rate()
	if err != nil {
		return err
	}
	t, err := generate(r)
	var bad *topology.ParameterError
	if errors.As(err, &bad) {
		return tool.Usagef("%s", bad)
	}
	if err != nil {
		return err
	}
	return t.WriteNetlist(s.env.Stdout)
}

type generateStarCmd struct {
	Hosts int `default:"4" help:"Channel adapters (1 to 254, default 4)."`
}

func (c generateStarCmd) Run(s *session, g *fabricGenerateCmd) error {
	return g.print(s, func(r topology.Rate) (*topology.Topology, error) { return topology.Star(c.Hosts, r) })
}

type generateFatTreeCmd struct {
	Radix     int `default:"36" help:"Ports of a switch, even (default 36)."`
	Levels    int `default:"2" help:"Levels of switches, 2 or 3 (default 2)."`
	Hosts     int `help:"Channel adapters (default: as many as fit)."`
	HostPorts int `default:"1" help:"Ports of an adapter, 1 or 2, both at one leaf (default 1)."`
}

func (c generateFatTreeCmd) Run(s *session, g *fabricGenerateCmd) error {
	return g.print(s, func(r topology.Rate) (*topology.Topology, error) {
		return topology.FatTree(topology.FatTreeShape{Radix: c.Radix, Levels: c.Levels, Hosts: c.Hosts, HostPorts: c.HostPorts}, r)
	})
}

type generateTorusCmd struct {
	Size  []int `required:"" help:"Switches along each dimension, such as 4,4,2 (2 to 1024 each, 1 to 6 dimensions)."`
	Hosts int   `default:"1" help:"Channel adapters at each switch (default 1)."`
}

func (c generateTorusCmd) Run(s *session, g *fabricGenerateCmd) error {
	return g.print(s, func(r topology.Rate) (*topology.Topology, error) { return topology.Torus(c.Size, c.Hosts, r) })
}

type generateDragonflyCmd struct {
	Groups   int `default:"9" help:"Groups (1 to switches times global plus 1, default 9)."`
	Switches int `default:"4" help:"Switches of a group (default 4)."`
	Hosts    int `default:"2" help:"Channel adapters at each switch (default 2)."`
	Global   int `default:"2" help:"Links of each switch to other groups (default 2)."`
}

func (c generateDragonflyCmd) Run(s *session, g *fabricGenerateCmd) error {
	return g.print(s, func(r topology.Rate) (*topology.Topology, error) {
		return topology.Dragonfly(c.Groups, c.Switches, c.Hosts, c.Global, r)
	})
}
