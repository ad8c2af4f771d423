package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lastwords"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/os/cgroup"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/service"
)

type upCmd struct {
	Config        string   `placeholder:"FILE" help:"Configuration file (default: softvpi/driver.json in the user's configuration directory, if it exists)."`
	Socket        string   `help:"Socket that programs attach to (default: $$SOFTVPI_SOCKET, or below $$XDG_RUNTIME_DIR)."`
	State         string   `help:"Directory of the registry, the event log and the lock file (default: $$SOFTVPI_STATE, or below $$XDG_STATE_HOME)."`
	Adapter       []string `sep:"none" help:"Adapter, instead of the file's adapters: NAME=ADDRESS[,port=N][,mtu=N][,path=auto|wire|local|direct][,frames=auto|on|off][,generation=mlx5|mlx4][,device=NAME][,follow], or NAME=cable[,node=NODE][,ibport=N][,address=ADDRESS][,device=NAME] for a port of an InfiniBand fabric. May be given several times."`
	Fabric        string   `placeholder:"CONNECT" help:"Fabric of another process to plug adapters with a cable into, instead of the file's: its name, the path of its socket, or udp://HOST[:PORT]."`
	Manage        string   `placeholder:"ADDRESS:PORT" help:"Also serve the management interface on TCP, with TLS, to anyone who sends the token (api-token in the state directory)."`
	Web           string   `placeholder:"127.0.0.1:PORT" help:"Serve the device manager pages at this address from the start, instead of at a free port when softvpi web asks for them."`
	Programs      string   `help:"Whose programs besides those of this user and root may attach: owner (nobody's), group, everyone."`
	Limits        string   `placeholder:"NAME=VALUE[,...]" help:"What attached programs may make the driver hold, instead of the file's limits: memory=SIZE, memory_per_user=SIZE, memory_per_program=SIZE, descriptors_per_program=N."`
	Containers    string   `placeholder:"count=N[,...]" help:"Sockets for so many containers, instead of the file's, each with a quota of its own: count=N[,memory=SIZE][,descriptors=N], and for one of them NUMBER.memory=SIZE, NUMBER.descriptors=N. softvpi cdi generate gives them to containers."`
	Readers       string   `help:"Who besides this user and root may read through the management socket: owner (nobody), group, everyone."`
	SystemLog     string   `placeholder:"LOG" help:"Also send every event to the system log: journald, syslog, eventlog (that of Windows), auto (the first of these that there is)."`
	TraceFile     bool     `help:"Keep the trace that runs from the start in a circular file, of 100 MB unless the configuration says otherwise, which outlives the driver."`
	SkipSelfCheck bool     `help:"Skip the RDMA check of each pair of adapters at start."`
	Background    bool     `help:"Start the driver in the background, and return when programs can attach. Its output goes to driver.log in the state directory; softvpi down stops it."`
	Verbose       bool     `short:"v" help:"Log everything that an administrator may want to know to standard error: --log debug."`
	Log           string   `placeholder:"LEVEL[,FORMAT]" help:"What is logged to standard error, and how: debug, info, warn (default) or error; text (default; with a field for each attribute if that is the journal) or json."`
}

func (c upCmd) Run(s *session) error { return c.run(s, service.Begin) }

// run runs the driver, as a service of Windows if begin says that this process is one.
func (c upCmd) run(s *session, begin beginService) (err error) {
	lastwords.Abort()
	w, ctx, err := begin(s.ctx)
	if err != nil {
		return err
	}
	defer func() { err = w.End(err) }()
	cfg, err := c.config()
	if err != nil {
		return err
	}
	switch {
	case w != nil:
		end, err := c.inService(s, cfg)
		if err != nil {
			return err
		}
		defer end()
	case c.Background:
		if _, err := c.logger(s.env.Stderr); err != nil {
			return err
		}
		return startInBackground(s, cfg)
	}
	log, err := c.logger(s.env.Stderr)
	if err != nil {
		return err
	}
	limitHeap()
	ctx, stop := asService(ctx)
	defer stop()
	v, err := superviseMe()
	if err != nil {
		return err
	}
	defer v.close()
	o := driver.Options{Version: version(), Log: log, SystemLog: c.SystemLog, OwnProcess: true}
	v.watch(&o, log)
	d, err := driver.Start(ctx, cfg, o)
	if err != nil {
		return err
	}
	v.ready(d.Overview())
	w.Ready()
	var up bytes.Buffer
	announce(&up, d)
	_, _ = up.WriteTo(s.env.Stdout) // in one write, for those who wait for the driver
	<-ctx.Done()
	v.stopping()
	w.Stopping()
	fmt.Fprintln(s.env.Stdout, "stopping")
	return d.Close()
}

// limitHeap keeps the garbage of a driver in a control group with a limit from filling it: what programs make
// the driver hold has half of the limit (server.DefaultMemory), and without this the heap could take as much
// again for garbage.
func limitHeap() {
	m, err := cgroup.Available(os.DirFS("/"))
	if err != nil || m.Machine() || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(int64(m.Bytes / 8 * 5))
}

// config merges the file and the flags; flags win.
func (c upCmd) config() (config.Config, error) {
	var cfg config.Config
	file, given := c.Config, c.Config != ""
	if !given {
		file = paths.Config()
	}
	if file != "" {
		var err error
		if cfg, err = config.Load(kong.ExpandPath(file)); err != nil && (given || !errors.Is(err, os.ErrNotExist)) {
			return cfg, err
		}
	}
	if c.Socket != "" {
		cfg.Socket = c.Socket
	}
	if c.State != "" {
		cfg.State = c.State
	}
	if c.Fabric != "" {
		f := config.Fabric{Connect: c.Fabric}
		if cfg.Fabric != nil && strings.HasPrefix(c.Fabric, cable.Scheme) {
			f.Key = cfg.Fabric.Key
		}
		cfg.Fabric = &f
	}
	if c.Manage != "" {
		m := config.Manage{}
		if cfg.Manage != nil {
			m = *cfg.Manage
		}
		m.Listen = c.Manage
		cfg.Manage = &m
	}
	if c.Web != "" {
		cfg.Web = c.Web
	}
	if c.Programs != "" {
		cfg.Programs = c.Programs
	}
	if c.Limits != "" {
		l, err := config.ParseLimits(c.Limits)
		if err != nil {
			return cfg, err
		}
		cfg.Limits = &l
	}
	if c.Containers != "" {
		n, err := config.ParseContainers(c.Containers)
		if err != nil {
			return cfg, err
		}
		cfg.Containers = &n
	}
	if c.Readers != "" {
		cfg.Readers = c.Readers
	}
	cfg.SkipSelfCheck = cfg.SkipSelfCheck || c.SkipSelfCheck
	if c.TraceFile {
		t := config.Trace{}
		if cfg.Trace != nil {
			t = *cfg.Trace
		}
		t.File = true
		cfg.Trace = &t
	}
	if len(c.Adapter) > 0 {
		cfg.Adapters = nil
	}
	for _, text := range c.Adapter {
		a, err := config.ParseAdapter(text)
		if err != nil {
			return cfg, err
		}
		cfg.Adapters = append(cfg.Adapters, a)
	}
	return cfg, nil
}

// Beginnings of the lines that say that the driver is up.
const (
	listening   = "listening"
	noAttaching = "programs cannot attach:"
)

// announce prints what has started.
func announce(w io.Writer, d *driver.Driver) {
	if d.Recovered() {
		fmt.Fprintln(w, "the driver before did not stop cleanly; what it left was cleared")
	}
	st := d.Status()
	if st.Died != nil {
		fmt.Fprintln(w, st.Died)
	}
	if st.Volatile != "" {
		fmt.Fprintf(w, "nothing will be kept: %s\n", st.Volatile)
	}
	for i := range st.Adapters {
		a := &st.Adapters[i]
		if p := a.InfiniBand; p != nil {
			fmt.Fprintf(w, "%-12s %-15s InfiniBand, %s, LID %d, SM LID %d, rate %s, MTU %d\n", a.Name, addressOf(a), p.State, p.LID,
				p.SMLID, cmp.Or(p.Rate, "none"), p.MTU)
			if f := d.Config().Fabric; f != nil && f.Connect != "" && p.State == "Down" {
				fmt.Fprintf(w, "waiting      %s comes up when the fabric %s can be reached and has a node for it\n", a.Name, f.Connect)
			}
			continue
		}
		fmt.Fprintf(w, "%-12s %-15s %s, path MTU %d\n", a.Name, d.Config().Adapters[i].Address, a.Encapsulation(", "), a.ActiveMTU)
	}
	for _, k := range d.Checks() {
		fmt.Fprintf(w, "checked      %s\n", k)
	}
	if why := d.NoAttach(); why != "" {
		fmt.Fprintf(w, noAttaching+" %s\n", why)
	} else {
		fmt.Fprintf(w, listening+"    %s\n", st.Socket)
	}
	if at := d.Managed(); at != "" {
		fmt.Fprintf(w, "managed at   https://%s\n", at)
	}
	if at := d.Pages(); at != "" {
		fmt.Fprintf(w, "pages at     http://%s (softvpi web prints a link that signs in)\n", at)
	}
}

// addressOf returns the text by which an InfiniBand port is identified.
func addressOf(a *driver.AdapterStatus) string {
	if len(a.Addresses) == 0 {
		return "-"
	}
	return a.Addresses[0].String()
}

type socketFlag struct {
	Socket string `help:"Socket of the driver (default: $$SOFTVPI_SOCKET, or below $$XDG_RUNTIME_DIR)."`
}

func (f socketFlag) admin() *driver.Admin { return driver.NewAdmin(f.Socket) }

type statusCmd struct {
	showFlags `embed:""`
}

func (c statusCmd) Run(s *session) error {
	st, err := c.admin().Status(s.ctx)
	return show(s, c.JSON, st, err)
}

type adapterCmd struct {
	Enable  enableCmd  `cmd:"" help:"Enable an adapter."`
	Disable disableCmd `cmd:"" help:"Disable an adapter: its connections end, waiting calls are canceled."`
	Restart restartCmd `cmd:"" help:"Disable and enable an adapter, so that changed registry keys take effect."`
	Sleep   sleepCmd   `cmd:"" help:"Put the host of an adapter's Ethernet function to sleep, until a magic packet or a pattern wakes it."`
	OID     oidCmd     `cmd:"" name:"oid" help:"Query or set an object of an adapter's driver by its number, as programs on Windows do."`
	Wake    wakeCmd    `cmd:"" help:"Wake the host of an adapter's Ethernet function."`
}

type adapterRef struct {
	socketFlag `embed:""`
	Name       string `arg:"" help:"Name of the adapter, such as \"Ethernet 1\"."`
}

type enableCmd struct {
	adapterRef `embed:""`
}

func (c enableCmd) Run(s *session) error {
	return c.admin().SetAdapter(s.ctx, driver.AdapterRequest{Adapter: c.Name, Enable: true})
}

type disableCmd struct {
	adapterRef `embed:""`
}

func (c disableCmd) Run(s *session) error {
	return c.admin().SetAdapter(s.ctx, driver.AdapterRequest{Adapter: c.Name})
}

type sleepCmd struct {
	adapterRef `embed:""`
	Pattern    []string `placeholder:"OFFSET:HEX[+...]" help:"Frames that wake the host too, such as 12:0806+38:c0000201 for ARP requests about 192.0.2.1."`
}

func (c sleepCmd) Run(s *session) error {
	return c.admin().SleepAdapter(s.ctx, driver.SleepRequest{Adapter: c.Name, Sleep: true, Patterns: c.Pattern})
}

type wakeCmd struct {
	adapterRef `embed:""`
}

func (c wakeCmd) Run(s *session) error {
	return c.admin().SleepAdapter(s.ctx, driver.SleepRequest{Adapter: c.Name})
}

type restartCmd struct {
	adapterRef `embed:""`
}

func (c restartCmd) Run(s *session) error { return c.admin().RestartAdapter(s.ctx, c.Name) }
