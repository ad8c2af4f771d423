package device

import (
	"errors"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/handle"
)

// A CommandLog counts the commands that programs give to the adapters, and keeps the last of each adapter. Commands
// that concern no adapter are not in it. Its methods may be called at any time.
type CommandLog struct {
	adapters []*adapterCommands
}

// adapterCommands are those of one adapter.
type adapterCommands struct {
	mu      sync.Mutex
	stats   [len(commandNames)]CommandStats
	recent  []CommandRecord // a ring, once it is full
	oldest  int
	maximum int
}

// CommandStats are what was counted of one kind of command.
type CommandStats struct {
	Command        string
	Count, Failed  uint64
	Total, Longest time.Duration
}

// CommandRecord is a command that was carried out.
type CommandRecord struct {
	Began   time.Time
	Took    time.Duration
	Command string
	Program string
	PID     int
	Failure command.Code // 0: none
}

// keptCommands is how many records there are of an adapter.
const keptCommands = 256

// NewCommandLog makes the log of so many adapters.
func NewCommandLog(adapters int) *CommandLog {
	l := &CommandLog{adapters: make([]*adapterCommands, adapters)}
	for i := range l.adapters {
		l.adapters[i] = &adapterCommands{maximum: keptCommands}
	}
	return l
}

// Stats are the kinds of commands that an adapter was given.
func (l *CommandLog) Stats(adapter uint32) []CommandStats {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []CommandStats
	for i, s := range a.stats {
		if s.Count > 0 {
			s.Command = commandNames[i]
			out = append(out, s)
		}
	}
	return out
}

// Recent are the last commands that an adapter was given, the oldest first.
func (l *CommandLog) Recent(adapter uint32) []CommandRecord {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(append([]CommandRecord{}, a.recent[a.oldest:]...), a.recent[:a.oldest]...)
}

func (a *adapterCommands) add(kind int, r CommandRecord) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.stats[kind]
	s.Count++
	s.Total += r.Took
	s.Longest = max(s.Longest, r.Took)
	if r.Failure != 0 {
		s.Failed++
	}
	if len(a.recent) < a.maximum {
		a.recent = append(a.recent, r)
		return
	}
	a.recent[a.oldest] = r
	a.oldest = (a.oldest + 1) % a.maximum
}

// LoggedClient is a Client whose commands are in a CommandLog.
type LoggedClient struct {
	*Client
	log *CommandLog

	mu sync.Mutex
	// known are the adapters of its objects, by kind and index of their handles, one more than the adapter's index; 0:
	// not known.
	known [command.KindCM + 1][]uint8
}

// Client notes the commands of c.
func (l *CommandLog) Client(c *Client) *LoggedClient { return &LoggedClient{Client: c, log: l} }

// unknownAdapter is that of an object of which no adapter is known.
const unknownAdapter = -1

// where is the adapter of an object.
func (c *LoggedClient) where(h command.Handle) int {
	kind, i := handle.Kind(h), handle.Index(h)
	if kind == 0 || kind > command.KindCM {
		return unknownAdapter
	}
	c.mu.Lock()
	adapter := unknownAdapter
	if i < uint32(len(c.known[kind])) {
		adapter = int(c.known[kind][i]) - 1
	}
	c.mu.Unlock()
	if adapter != unknownAdapter {
		return adapter
	}
	if a := c.Client.adapterOf(h); a != nil {
		c.learn(h, int(a.index))
		return int(a.index)
	}
	return unknownAdapter
}

// learn keeps the adapter of an object.
func (c *LoggedClient) learn(h command.Handle, adapter int) {
	kind, i := handle.Kind(h), int(handle.Index(h))
	if kind == 0 || kind > command.KindCM || adapter >= 1<<8-1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.known[kind]) <= i {
		c.known[kind] = append(c.known[kind], 0)
	}
	c.known[kind][i] = uint8(adapter + 1)
}

// made notes a command that made an object.
func (c *LoggedClient) made(kind int, began time.Time, adapter int, h command.Handle, err error) {
	if err == nil {
		c.learn(h, adapter)
	}
	c.note(kind, began, adapter, err)
}

// note notes a command.
func (c *LoggedClient) note(kind int, began time.Time, adapter int, err error) {
	if adapter < 0 || adapter >= len(c.log.adapters) || errors.Is(err, ErrWaits) {
		return // not of an adapter, or not carried out yet
	}
	r := CommandRecord{Began: began, Took: time.Since(began), Command: commandNames[kind], Program: c.cfg.Name, PID: c.cfg.PID}
	if err != nil {
		r.Failure = command.Internal
		var e *command.Error
		if errors.As(err, &e) {
			r.Failure = e.Code
		}
	}
	c.log.adapters[adapter].add(kind, r)
}

// adapterOf is the adapter of an object, nil where there is none.
func (c *Client) adapterOf(h command.Handle) *adapter {
	c.host.lock()
	defer c.host.unlock()
	if p := c.pds.Get(h); p != nil {
		return p.adapter
	}
	if m := c.mrs.Get(h); m != nil {
		return m.pd.adapter
	}
	if w := c.mws.Get(h); w != nil {
		return w.pd.adapter
	}
	if q := c.cqs.Get(h); q != nil {
		return q.adapter
	}
	if s := c.srqs.Get(h); s != nil {
		return s.pd.adapter
	}
	if q := c.qps.Get(h); q != nil {
		return q.adapter
	}
	if o := c.ahs.Get(h); o != nil {
		return o.pd.adapter
	}
	if o := c.cms.Get(h); o != nil {
		return o.adapter
	}
	return nil
}

// The kinds of commands.
const (
	commandAllocPD = iota
	commandRegisterMemory
	commandAllocWindow
	commandCreateCQ
	commandResizeCQ
	commandModerateCQ
	commandCreateSRQ
	commandModifySRQ
	commandResizeSRQ
	commandQuerySRQ
	commandCreateQP
	commandModifyQP
	commandQueryQP
	commandCreateAH
	commandAttachMulticast
	commandDetachMulticast
	commandDestroy
	commandCMCreate
	commandCMBind
	commandCMListen
	commandCMConnect
	commandCMAccept
	commandCMEstablish
	commandCMReject
	commandCMDisconnect
	commandCMQuery
	commandCMAttributes
)

// commandNames are the kinds of commands by their numbers, written as those of a card's firmware are.
var commandNames = [...]string{
	commandAllocPD:         "ALLOC_PD",
	commandRegisterMemory:  "REGISTER_MEMORY",
	commandAllocWindow:     "ALLOC_WINDOW",
	commandCreateCQ:        "CREATE_CQ",
	commandResizeCQ:        "RESIZE_CQ",
	commandModerateCQ:      "MODERATE_CQ",
	commandCreateSRQ:       "CREATE_SRQ",
	commandModifySRQ:       "MODIFY_SRQ",
	commandResizeSRQ:       "RESIZE_SRQ",
	commandQuerySRQ:        "QUERY_SRQ",
	commandCreateQP:        "CREATE_QP",
	commandModifyQP:        "MODIFY_QP",
	commandQueryQP:         "QUERY_QP",
	commandCreateAH:        "CREATE_AH",
	commandAttachMulticast: "ATTACH_MULTICAST",
	commandDetachMulticast: "DETACH_MULTICAST",
	commandDestroy:         "DESTROY",
	commandCMCreate:        "CM_CREATE",
	commandCMBind:          "CM_BIND",
	commandCMListen:        "CM_LISTEN",
	commandCMConnect:       "CM_CONNECT",
	commandCMAccept:        "CM_ACCEPT",
	commandCMEstablish:     "CM_ESTABLISH",
	commandCMReject:        "CM_REJECT",
	commandCMDisconnect:    "CM_DISCONNECT",
	commandCMQuery:         "CM_QUERY",
	commandCMAttributes:    "CM_ATTRIBUTES",
}
