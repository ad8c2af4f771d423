package driver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Words of what an adapter does about priorities without a peer, which are also the names of its values in the registry. They are
// what Windows' cmdlets set: Set-NetQosDcbxSetting (willing), Enable-NetQosFlowControl (pfc), New-NetQosTrafficClass (prio-tc, tc-bw)
// and New-NetQosPolicy (app).
const (
	wordWilling = "willing"
	wordDCBX    = "dcbx"
	wordPFC     = "pfc"
	wordPrioTC  = "prio-tc"
	wordTCBW    = "tc-bw"
	wordTCRate  = "tc-rate"
	wordApp     = "app"
	byDefault   = "default"
)

// qosDefaults are the words with their defaults: a willing port (WinOF-2 Ethernet b, DCBX) with one class.
var qosDefaults = map[string]string{wordWilling: "on", wordDCBX: "auto", wordPFC: qos.None, wordPrioTC: qos.None, wordTCBW: "0:100",
	wordTCRate: qos.None, wordApp: qos.None}

// parseOwn reads what an adapter does without a peer, from those words that are set. Errors are *api.FieldError or *qos.FieldError.
func parseOwn(set map[string]string) (l dcb.Local8021Q, err error) {
	word := func(name string) string {
		if text, ok := set[name]; ok {
			return text
		}
		return qosDefaults[name]
	}
	switch w := word(wordWilling); w {
	case "on", "1":
		l.Willing = true
	case "off", "0":
	default:
		return l, api.Wrong(wordWilling, fmt.Sprintf("%q", w), "on, off")
	}
	if l.Protocol, err = dcb.ParseProtocol(word(wordDCBX)); err != nil {
		return l, api.Wrong(wordDCBX, fmt.Sprintf("%q", word(wordDCBX)), "auto, ieee, cee")
	}
	if l.Settings.PFC, err = qos.ParsePriorities(word(wordPFC)); err != nil {
		return l, err
	}
	if l.Settings.ETS, err = qos.ParseClasses(word(wordPrioTC), word(wordTCBW)); err != nil {
		return l, err
	}
	if l.Settings.Applications, err = qos.ParseApplications(word(wordApp)); err != nil {
		return l, err
	}
	has := func(name string) bool { _, ok := set[name]; return ok }
	l.ChosenPFC, l.ChosenETS, l.ChosenApplications = has(wordPFC), has(wordPrioTC) || has(wordTCBW), has(wordApp)
	return l, nil
}

// ownQoS returns what adapter i does without a peer, by the registry; the defaults if that makes no sense.
func (d *Driver) ownQoS(i int) dcb.Local8021Q {
	set := d.registry.DCB(d.running[i].known())
	l, err := parseOwn(set)
	if err != nil {
		d.log.Warn("stored settings of priorities are not allowed; the defaults are used", "adapter", d.running[i].Name, "problem", err)
		l, _ = parseOwn(nil)
	}
	return l
}

// SetQoS implements apiserver.QoSSource.
func (d *Driver) SetQoS(q api.QoSRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	if len(q.Settings) == 0 {
		return api.Wrong("settings", "empty", strings.Join(slices.Sorted(maps.Keys(qosDefaults)), ", "))
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	r := d.running[index]
	if why := d.noPriorities(int(index)); why != "" {
		return fmt.Errorf("%w: %s", api.ErrUnsupported, why)
	}
	set := d.registry.DCB(r.known())
	var changes []registry.Change
	for _, w := range q.Settings {
		name, text, _ := strings.Cut(w, "=")
		if _, known := qosDefaults[name]; !known && !strings.HasPrefix(name, wordPolicy) {
			return api.Wrong("setting", fmt.Sprintf("%q", w), strings.Join(slices.Sorted(maps.Keys(qosDefaults)), ", ")+", each with = and its value")
		}
		if why := d.noWord(int(index), name); why != "" && text != byDefault {
			return fmt.Errorf("%w: %s: %s", api.ErrUnsupported, name, why)
		}
		if text == byDefault {
			delete(set, name)
			changes = append(changes, r.SetDCB(name, nil))
			continue
		}
		set[name] = text
		changes = append(changes, r.SetDCB(name, &text))
	}
	_, err = parseOwn(set)
	if text, ok := set[wordTCRate]; ok && err == nil {
		_, err = qos.ParseRates(text)
	}
	if err == nil {
		err = checkPolicies(set)
	}
	if err != nil {
		var wrong *qos.FieldError
		if errors.As(err, &wrong) {
			return api.Wrong(wrong.Field, fmt.Sprint(wrong.Value), wrong.Want)
		}
		return err
	}
	if err := d.registry.Apply(changes...); err != nil {
		return err
	}
	if err := d.followPriorities(int(index)); err != nil {
		return err
	}
	return ignoreUnsupported(d.host.SetLLDP(index, d.lldpConfig(int(index))))
}

// noPriorities returns why the port of adapter i has no settings of priorities of its own; empty: it has.
func (d *Driver) noPriorities(i int) string { return detail(d.host.CheckPriorities(uint32(i))) }

// noWord returns why the port of adapter i cannot have a setting of its own; empty: it can.
func (d *Driver) noWord(i int, name string) string {
	switch name {
	case wordWilling, wordDCBX:
		return d.noLLDP(i)
	case wordPFC:
		return detail(d.host.CheckLLDP(uint32(i))) // a wire for LLDP is one for pause frames
	}
	return ""
}

// followPriorities makes adapter i's port treat priorities as it was set, unless its key switches that off.
func (d *Driver) followPriorities(i int) error {
	r := d.running[i]
	const byDSCP = 2
	set := d.registry.DCB(r.known())
	l := d.ownQoS(i)
	p := device.Priorities{
		Own: qos.Operative{Settings: qos.Defaults()},
		Received: qos.Classifier{ByDSCP: r.value("RxTrustedState") == byDSCP, Untagged: uint8(r.value("DefaultUntaggedPriority")),
			Lossless: r.value("RxUntaggedMapToLossless") == 1},
	}
	if r.value(keyQoS) != 0 {
		p.Own, p.Rates, p.Marking = l.Own(), ratesOf(set), r.marking()
		p.Marking.Policies = policiesOf(set)
	}
	return d.host.SetPriorities(uint32(i), p)
}

// ratesOf returns the rates of classes in stored settings, none if they make no sense.
func ratesOf(set map[string]string) qos.Rates {
	r, err := qos.ParseRates(set[wordTCRate])
	if err != nil {
		return qos.Rates{}
	}
	return r
}

// keyQoS is the key that switches the treatment of priorities off (NDIS quality of service).
const keyQoS = "*QOS"

// detail returns what an error of a command says; empty: nothing.
func detail(err error) string {
	var why *command.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &why):
		return why.Detail
	}
	return err.Error()
}

// noLLDP returns why the port of adapter i has no LLDP; empty: it has.
func (d *Driver) noLLDP(i int) string {
	if d.running[i].Generation != catalogue.MLX5 {
		return "adapters of the mlx4 generation have no DCBX"
	}
	return detail(d.host.CheckLLDP(uint32(i)))
}

// lldpParameters are those of mlxconfig or firmware for adapter i's port, as it has read them at its start.
func (d *Driver) lldpParameters(i int) (transmit, receive dcb.Mode, allowed bool) {
	of := func(name string) uint64 {
		return d.running[i].effective[fmt.Sprintf("%s_P%d", name, d.cfg.Slot(i).Port)]
	}
	return dcb.Mode(of("LLDP_NB_TX_MODE")), dcb.Mode(of("LLDP_NB_RX_MODE")), of("LLDP_NB_DCBX") == 1
}

// dcbxOff returns what keeps DCBX off on adapter i; empty: nothing does.
func (d *Driver) dcbxOff(i int) string {
	transmit, receive, allowed := d.lldpParameters(i)
	port := d.cfg.Slot(i).Port
	switch {
	case d.running[i].value("DcbxMode") != 2:
		return "DcbxMode is not 2"
	case d.running[i].value(keyQoS) == 0:
		return keyQoS + " is 0"
	case !allowed:
		return fmt.Sprintf("LLDP_NB_DCBX_P%d is 0", port)
	case transmit != dcb.All:
		return fmt.Sprintf("LLDP_NB_TX_MODE_P%d is not 2", port)
	case receive != dcb.All:
		return fmt.Sprintf("LLDP_NB_RX_MODE_P%d is not 2", port)
	}
	return ""
}

// lldpConfig returns how the LLDP agent of adapter i's port works.
func (d *Driver) lldpConfig(i int) dcb.Config {
	r, a := d.running[i], &d.cfg.Adapters[i]
	c := dcb.Config{DCBX: d.dcbxOff(i) == "", Local8021Q: d.ownQoS(i)}
	if r.value(keyQoS) == 0 {
		c.Local8021Q = dcb.Local8021Q{Settings: qos.Defaults()}
	}
	c.Transmit, c.Receive, _ = d.lldpParameters(i)
	name, _ := os.Hostname()
	c.Local = lldp.PDU{
		PortDescription: r.Name, SystemName: name, SystemDescription: "SoftVPI " + d.version,
		Capabilities: &lldp.Capabilities{Supported: lldp.CapabilityStation, Enabled: lldp.CapabilityStation},
	}
	if a.Address.IsValid() {
		const unknown = 1
		c.Local.Management = []lldp.ManagementAddress{{Addr: a.Address.Unmap().WithZone(""), Numbering: unknown}}
	}
	return c
}

// changePriorities makes the port of adapter i treat priorities by its settings, and its LLDP agent follow its keys and parameters.
func (d *Driver) changePriorities(i int) error {
	return errors.Join(ignoreUnsupported(d.followPriorities(i)), d.changeLLDP(i))
}

// changeLLDP makes the LLDP agent of adapter i's port follow its keys and parameters. Where there can be none, it says so.
func (d *Driver) changeLLDP(i int) error {
	c := d.lldpConfig(i)
	if c.Transmit == dcb.Off && c.Receive == dcb.Off && d.running[i].value("DcbxMode") != 2 {
		return ignoreUnsupported(d.host.SetLLDP(uint32(i), c))
	}
	if why := d.noLLDP(i); why != "" {
		r := d.running[i]
		d.besides.Warn("the port has no LLDP", "adapter", r.Name, "cause", why)
		d.events.Raise(r.Generation, events.LLDPRefused{Adapter: r.Name, Cause: why})
		return nil
	}
	return d.host.SetLLDP(uint32(i), c)
}

func ignoreUnsupported(err error) error {
	if isUnsupported(err) {
		return nil
	}
	return err
}
