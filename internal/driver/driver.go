package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/captures"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lastwords"
	"github.com/softvpi/softvpi/internal/driver/lock"
	"github.com/softvpi/softvpi/internal/driver/subnets"
	"github.com/softvpi/softvpi/internal/driver/teams"
	"github.com/softvpi/softvpi/internal/driver/tracing"
	"github.com/softvpi/softvpi/internal/driver/vswitch"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tuning"
)

// Options are the parameters of a driver apart from its configuration.
type Options struct {
	Version string
	Log     *slog.Logger // nil: nothing
	// SystemLog is a system log that also receives every event: journald, syslog or auto; empty: none.
	SystemLog string
	// OwnProcess says that the process is this driver's alone, so that a fatal error of the Go runtime is its death: the traceback is
	// kept for the next driver.
	OwnProcess bool
	// LoopPatience is how long the loop of a driver with its own process may not answer until the process ends; 0: a minute.
	LoopPatience time.Duration
	// Answered, if it is not nil, is told what the loop of a driver with its own process has answered, at least once in Within.
	Answered func(Status)
	Within   time.Duration
	// Sockets are those that a service manager has opened for the driver: each is that of programs or of the management interface, by
	// its path. They stay when the driver ends. The others it opens itself.
	Sockets []*net.UnixListener
}

// Driver is a running driver: its adapters, and the sockets for programs and for `softvpi status`.
type Driver struct {
	*vswitch.Switches // over adapters
	*subnets.Subnets  // virtual ones, of their adapters
	*teams.Roster     // of wires and of adapters
	*tracing.Tracer
	*captures.Recorder // of packets

	cfg     config.Config
	version string
	started time.Time
	log     *slog.Logger
	// besides is the log of what is an event, too: of nobody, where both go to one journal.
	besides *slog.Logger

	lock       *lock.Lock
	host       *device.Host
	incidents  incidents
	wiring     *wiring          // nil: no adapter has a cable, or another process runs their fabric
	switches   []namedSwitch    // complete once the adapters are
	vlans      []*vlanInterface // with changes held
	events     *events.Log
	system     *events.SystemLog // nil: it does not receive events
	stopping   atomic.Bool       // programs that end now do so because of the driver
	counters   *collector.Collector
	api        *apiserver.Server
	stopTCP    func() error
	managed    string                   // TCP address of the management interface
	attach     *server.Server           // nil if programs cannot attach
	noAttach   string                   // why not
	containers []*budget.Quota          // of the sockets for containers
	functions  functions                // virtual ones
	queues     machineQueues            // of virtual ports
	ends       map[string]*functionHost // of them, by their words; with changes held
	checks     []Check
	pages      pages
	commands   *commandlog.Log // of the commands of attached programs
	dumps      dumps
	ipoib      ipoibPorts
	recover    bool // the previous driver did not stop cleanly
	up         bool

	unsubscribe func() // from the host's changes of state

	// changes is held while changing the registry, or an adapter according to it.
	changes  sync.Mutex
	registry *registry.Registry
	running  []*running // by the adapters' index
	// settings is held, with changes, to change what adapters have read, and to read it without changes.
	settings      sync.RWMutex
	raised        chan raisedEvent // events of Ethernet functions; nil: there are none
	told          chan struct{}    // closed when all of them are written
	waking        waking
	agreements    *agreements    // of LLDP agents; nil: none yet
	expiries      *expiries      // of dropless modes; nil: none yet
	functionNews  *functionNews  // likewise
	functionWatch *functionWatch // of what their commands cost
	healing       *healer        // nil: not yet
	loop          loopWatch
	hosts         sync.Map // of the Ethernet functions: hostside.End by the index of adapters
	starting      sync.Map // RoCE modes by the index of adapters being enabled, whose start is to be reported
	tunings       *tuning.Log

	sockets         []*net.UnixListener // opened by a service manager, and not in use yet
	passedFunctions []*passedFunction   // likewise, for virtual functions

	own  bool // the process is the driver's alone
	last *lastwords.Recorder
	died *api.Death // how the driver before ended; nil: it stopped

	panics panics
}

// Start starts a driver: the lock, the adapters, the self-check, the sockets. When it returns, programs
// can attach.
func Start(ctx context.Context, cfg config.Config, o Options) (*Driver, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg, version: o.Version, own: o.OwnProcess, started: time.Now(), log: o.Log,
		commands: commandlog.New(len(cfg.Adapters)), incidents: newIncidents(), functionWatch: newFunctionWatch(),
		ends: map[string]*functionHost{}}
	d.ipoib.d = d
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.besides = d.log
	d.Tracer = tracing.New(tracing.Config{Automatic: cfg.Trace.Session(), State: cfg.State, Version: o.Version, Adapters: cfg.Names(),
		Log: d.log})
	d.commands.Failed, d.commands.Ended, d.commands.Tenant = d.commandFailed, d.Tracer.Command, d.functionCommand
	if err := d.start(ctx, o); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Driver) start(ctx context.Context, o Options) (err error) {
	if err := d.takeSockets(o.Sockets); err != nil {
		return err
	}
	if d.lock, err = lock.Acquire(d.cfg.State); err != nil {
		return err
	}
	if err := d.openEvents(o.SystemLog); err != nil {
		return err
	}
	if d.recover = d.lock.Stale; d.recover {
		d.besides.Warn("the driver before did not stop cleanly; what it left is cleared")
		d.events.Raise(0, events.DriverRecovered{})
	}
	if err := d.openRegistry(); err != nil {
		return err
	}
	d.openVirtualSwitches()
	d.openSubnets()
	d.healing = newHealer(d, len(d.running))
	d.openTeams()
	d.recallVLANs()
	remains := d.openLastWords()
	d.openTunings()
	if err := d.openFabric(); err != nil {
		return err
	}
	if err := d.addAdapters(); err != nil {
		return err
	}
	d.Roster.Start()
	d.tellDeath(remains)
	if err := d.awaitPorts(ctx); err != nil {
		return err
	}
	if !d.cfg.SkipSelfCheck {
		if d.checks, err = d.selfCheck(ctx); err != nil {
			d.events.Raise(0, events.SelfCheckFailed{Cause: err})
			return fmt.Errorf("self-check: %w", err)
		}
	}
	d.healing.start()
	d.watchLoop(&o)
	if err := d.serveAttach(); err != nil {
		return err
	}
	d.watchFunctions()
	if err := d.Subnets.Configure(d.cfg.Overlay); err != nil {
		return err
	}
	if err := d.startAllFunctions(); err != nil {
		return err
	}
	if err := d.Switches.Follow(d.cfg.VirtualSwitches); err != nil {
		return err
	}
	if err := d.manage(); err != nil {
		return err
	}
	d.watchFabric()
	d.events.Raise(0, events.DriverStarted{Version: d.version, PID: os.Getpid(), Adapters: len(d.running)})
	d.up = true
	return nil
}

// Config returns the complete configuration.
func (d *Driver) Config() config.Config { return d.cfg }

// Checks returns the results of the self-check; empty if it was skipped.
func (d *Driver) Checks() []Check { return d.checks }

// Recovered reports whether the previous driver did not stop cleanly.
func (d *Driver) Recovered() bool { return d.recover }

// NoAttach returns why programs cannot attach; empty if they can.
func (d *Driver) NoAttach() string { return d.noAttach }

// Close stops the driver: it detaches programs, closes adapters, and removes sockets. Closing again does
// nothing.
func (d *Driver) Close() error {
	if d.stopping.Swap(true) {
		return nil
	}
	var errs []error
	d.loop.close()
	d.healing.close()
	if d.stopTCP != nil {
		errs = append(errs, d.stopTCP())
	}
	errs = append(errs, d.pages.close(true))
	if d.api != nil {
		errs = append(errs, d.api.Close())
	}
	d.Recorder.Close()
	d.functions.close()
	if d.attach != nil {
		errs = append(errs, d.attach.Close())
	}
	if d.unsubscribe != nil {
		d.unsubscribe()
	}
	if d.up {
		d.tellStopped()
	}
	d.closeFunctionIPoIB()
	d.ipoib.close()
	d.dumps.close()
	if d.up {
		d.keepAddresses()
	}
	d.Tracer.StopMoving()
	if d.host != nil {
		errs = append(errs, d.host.Close())
	}
	errs = append(errs, d.closeHosts())
	d.closeFunctionHosts()
	d.closeVLANs()
	d.Tracer.Close(d.own && d.up) // other drivers lie beside the program that shows what happens
	if d.raised != nil {
		close(d.raised)
		<-d.told
	}
	d.incidents.close()
	d.agreements.close()
	d.expiries.close()
	d.functionNews.close()
	d.Roster.Close()
	d.functionWatch.close()
	d.waking.close()
	errs = append(errs, d.wiring.close())
	if d.registry != nil {
		errs = append(errs, d.registry.Close())
	}
	if d.events != nil {
		errs = append(errs, d.events.Close())
	}
	if d.system != nil {
		d.system.Close()
	}
	errs = append(errs, d.last.Close())
	if d.lock != nil {
		errs = append(errs, d.lock.Release())
	}
	return errors.Join(errs...)
}
