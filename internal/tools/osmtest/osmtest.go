// Package osmtest is the tool of that name: it tests a subnet manager through its subnet administration,
// with the flows, options and inventory files of OpenSM's osmtest (osmtest(8); WinOF 5.50, "osmtest").
package osmtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// test is one run.
type test struct {
	ctx     context.Context
	env     tool.Env
	o       options
	port    *umad.Port
	to      umad.Address // of subnet administration
	log     *bufio.Writer
	problem int // number of problems in the log
}

// Main runs osmtest. The exit status is 0 for PASS, 1 for FAIL and 2 for wrong usage.
func Main(ctx context.Context, env tool.Env) int {
	fmt.Fprint(env.Stdout, "\nCommand Line Arguments\n")
	o, err := parse(env.Args, env.Stdout)
	if err != nil {
		return env.End(ctx, err)
	}
	if o.help {
		fmt.Fprint(env.Stdout, usage)
		return tool.Success
	}
	fmt.Fprintf(env.Stdout, "Done with args\n\tFlow = %s\n", flows[o.flow].name)
	t := &test{ctx: ctx, env: env, o: o}
	return env.End(ctx, t.run())
}

func (t *test) run() (err error) {
	where, err := umad.FromEnvironment()
	if err != nil {
		return err
	}
	where.Serving = t.o.flow == "e" || t.o.flow == "t"
	if t.port, err = where.Open(); err != nil {
		return err
	}
	defer t.port.Close()
	d := t.port.Device()
	switch {
	case t.o.list:
		fmt.Fprintf(t.env.Stdout, "\nListing GUIDs:\nPort 0: %#x\n", d.Node.PortGUID)
		return nil
	case t.o.guid == 0:
		fmt.Fprintf(t.env.Stdout, "using default guid %#x\n", d.Node.PortGUID)
	case t.o.guid != d.Node.PortGUID:
		return tool.Usagef("option -g %#x: there is no such port; allowed: %#x", t.o.guid, d.Node.PortGUID)
	}
	if t.to = (umad.Address{LID: d.Port.MasterSMLID, QP: umad.GSIQP, SL: d.Port.MasterSMSL}); t.to.LID == 0 {
		return errors.New("the port has no subnet manager: it has not been configured")
	}
	closing, err := t.openLog()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	return t.verdict(t.flow())
}

// openLog opens the log: a file, or the standard output.
func (t *test) openLog() (closing func() error, err error) {
	out := t.env.Stdout
	var file *os.File
	if t.o.log != "" {
		if file, err = os.OpenFile(t.o.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
			return nil, fmt.Errorf("log file (-l): %w", err)
		}
		out = file
	}
	t.log = bufio.NewWriter(out)
	return func() error {
		err := t.log.Flush()
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return err
	}, nil
}

// Log flags.
const (
	logError   = 0x01
	logInfo    = 0x02
	logVerbose = 0x04
)

func (t *test) say(under uint8, format string, args ...any) {
	if t.o.flags&under == 0 {
		return
	}
	now := time.Now()
	fmt.Fprintf(t.log, "%s %06d [%d] 0x%02x -> %s\n", now.Format("Jan 02 15:04:05"), now.Nanosecond()/1000, os.Getpid(), under,
		fmt.Sprintf(format, args...))
	if t.o.flushed {
		flush(t.log)
	}
}

// wrong records that a rule is violated.
func (t *test) wrong(format string, args ...any) {
	t.problem++
	t.say(logError, "ERR: "+format, args...)
}

// errFailed says that a flow has found problems.
var errFailed = errors.New("the subnet administration failed the test; the log says why")

func (t *test) flow() error {
	if err := t.classPortInfo(); err != nil {
		return err
	}
	return flows[t.o.flow].run(t)
}

// verdict prints the result of a flow.
func (t *test) verdict(err error) error {
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	var usage *tool.UsageError
	if errors.As(err, &usage) {
		return err
	}
	if err != nil {
		t.say(logError, "ERR: %v", err)
	}
	result := "PASS"
	if err != nil || t.problem > 0 {
		result = "FAIL"
	}
	flush(t.log)
	fmt.Fprintf(t.env.Stdout, "OSMTEST: TEST \"%s\" %s\n", flows[t.o.flow].name, result)
	if result == "FAIL" {
		return errors.Join(errFailed, err)
	}
	return nil
}

// flush writes the log out if it shares the standard output; failures are reported at the end.
func flush(w *bufio.Writer) { _ = w.Flush() }

// ask queries subnet administration. It does not check the status of the answer.
func (t *test) ask(method uint8, attribute uint16, mask uint64, data []byte) (*umad.Answer, error) {
	return t.askOften(method, attribute, mask, data, 0, 3)
}

func (t *test) askOften(method uint8, attribute uint16, mask uint64, data []byte, key uint64, tries int) (*umad.Answer, error) {
	m := mad.NewSA(method, attribute, 0, 0)
	m.ComponentMask, m.SMKey = mask, key
	copy(m.Data[:], data)
	if method == mad.MethodGetMulti { // always a transfer, here with one segment
		const repeated = mad.Len - mad.SADataLen - mad.RMPPHeaderEnd // part of the headers in each segment
		m.RMPP = mad.RMPP{Version: 1, Type: mad.RMPPData, RespTime: 31, Flags: mad.RMPPActive | mad.RMPPFirst | mad.RMPPLast, Data1: 1,
			Data2: uint32(repeated + len(data))}
	}
	return t.port.Query(t.ctx, t.to, &m, umad.Timing{Timeout: t.o.timeout, Tries: tries})
}

// table requests records, and splits the answer.
func (t *test) table(attribute uint16, mask uint64, data []byte, least int) ([][]byte, error) {
	a, err := t.ask(mad.MethodGetTable, attribute, mask, data)
	if err != nil {
		return nil, fmt.Errorf("table of attribute %#06x: %w", attribute, err)
	}
	switch {
	case a.Status == mad.SANoRecords:
		return nil, nil
	case a.Status != mad.StatusOK:
		return nil, fmt.Errorf("table of attribute %#06x: %s", attribute, mad.StatusText(a.Status))
	}
	return cut(a, least)
}

// cut splits an answer into records, each of at least that many bytes.
func cut(a *umad.Answer, least int) (list [][]byte, err error) {
	if len(a.Records) == 0 {
		return nil, nil
	}
	each := int(a.AttrOffset) * 8
	if a.Cut {
		return nil, errors.New("the answer is cut: the transport does not support transfers of several packets")
	}
	if each < least {
		return nil, fmt.Errorf("records of %d bytes; allowed: at least %d", each, least)
	}
	for b := a.Records; len(b) >= each; b = b[each:] {
		list = append(list, b[:each])
	}
	return list, nil
}

// classPortInfo begins every flow.
func (t *test) classPortInfo() error {
	a, err := t.ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil)
	if err != nil {
		return fmt.Errorf("ClassPortInfo: %w", err)
	}
	if a.Status != mad.StatusOK {
		return fmt.Errorf("ClassPortInfo: %s", mad.StatusText(a.Status))
	}
	d := a.Data[:]
	t.say(logInfo, "SA Class Port Info: base_ver:%d class_ver:%d cap_mask:0x%X resp_time_val:0x%X", d[0], d[1],
		uint16(d[2])<<8|uint16(d[3]), d[7]&31)
	return nil
}

// ownGID returns the GID of the port.
func (t *test) ownGID() (g ib.GID) {
	d := t.port.Device()
	for i := range 8 {
		g[i], g[8+i] = byte(d.Port.GIDPrefix>>(56-8*i)), byte(d.Node.PortGUID>>(56-8*i))
	}
	return g
}
