package fabric

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// agree are command lines to which our tools and Debian's print the same text on our fabric, at a node with two
// ports. Tables here take several packets, which ibsim's own library would cut.
const agree = `
saquery
saquery NR
saquery PIR
saquery PIR 2
saquery PR
saquery -p
saquery -p --src-to-dst 1:5
saquery --slid 1 PR
saquery --dlid 5 PR
saquery --dlid 5 --reversible 1 PR
saquery --sgid-to-dgid fe80::2:c903:0:1003-fe80::2:c903:0:1005
saquery SWIR
saquery SMIR
saquery LR
saquery -x
saquery LR 1/7 2/7
saquery LFTR
saquery LFTR 2
saquery MFTR
saquery SL2VL
saquery VLAR
saquery GIR
saquery --smkey 1 PKTR
saquery PKTR
saquery MCMR
saquery --mgid ff12:a01c:fe80::1234 MCMR
saquery --pkey 0xffff MCMR
saquery -g
saquery -m
saquery -m 0xC001
saquery --mlid 0xC000 MCMR
saquery SR
saquery -S
saquery IIR
saquery -I
saquery -c
saquery -s
saquery -D
saquery -L
saquery -G hca3
saquery -O 1
saquery -U 0x0002c90300001001
saquery NR 99
saquery --smkey 5 NR
ibtracert 1 5
ibtracert -m 0xC001 4 5
ibtracert -m 0xC000 4 5
ibtracert -n 1 5
ibtracert -G 0x0002c90300001003 0x0002c90300001005
ibroute 2
ibroute -a 2
ibroute -n 2
ibroute 2 1 5
ibroute -M 2
ibroute -M 3
ibroute -M -D 0,1
ibroute -M 2 0xC000 0xC010
ibaddr
ibaddr -g
ibaddr -l 5
ibaddr -G 0x0002c90300001005
ibaddr -P 2
ibaddr -D 0,1
sminfo
sminfo -D 0
sminfo -P 2
smpquery -P 2 nodedesc 3
smpquery -G nodeinfo 0x0002c90300001005
smpquery -c nodeinfo 2 0,7
smpquery -D portinfo 0,1 7
smpquery -D pkeys 0
smpquery sl2vl 2 7
smpquery vlarb 2 7
smpquery guidinfo 5
smpquery MEPI 2 7
smpdump -G 0x0002c90300001005 0x11
smpdump 2 0x12
smpdump -s 2 0x15 7
ibportstate 2 7
ibportstate -D 0,1 7
ibportstate -G 0x0002c90200002000 7
perfquery -G 0x0002c90300001005 1 | Select|Error|Downed|Discards
perfquery -a 2 | Select|Error|Downed|Discards
perfquery -l 2 | Select|Error|Downed|Discards
perfquery -x 2 7 | Select
perfquery -c 5 1 | Select
perfquery --rcverr 2 7
perfquery --xmtdisc 2 7
ibnetdiscover
ibnetdiscover -f
ibnetdiscover -l
ibnetdiscover -H
ibnetdiscover -S
ibnetdiscover -R
ibnetdiscover -p
iblinkinfo
iblinkinfo -l
iblinkinfo -d
iblinkinfo -p
iblinkinfo -S 0x0002c90200002000
iblinkinfo -D 0,1
ibqueryerrors
ibqueryerrors -c
ibqueryerrors -s LinkDownedCounter
ibsysstat -G 0x0002c90300001009
`

// set sets a record of subnet administration.
func (d *datagrams) set(p *umad.Port, attribute uint16, mask uint64, record []byte) {
	d.t.Helper()
	m := mad.NewSA(mad.MethodSet, attribute, 0, 0)
	m.ComponentMask = mask
	copy(m.Data[:], record)
	a, err := p.Query(context.Background(), umad.Address{LID: p.Device().Port.MasterSMLID, QP: umad.GSIQP}, &m, umad.DefaultTiming)
	if err != nil || a.Status != 0 {
		d.t.Fatalf("attribute %#x: %v %+v", attribute, err, a)
	}
}

// register creates groups, services and subscriptions for the tools to show.
func (d *datagrams) register() {
	d.t.Helper()
	for i, node := range []string{"hca2", "hca3"} {
		p, err := umad.OpenService(umad.ServiceOptions{Socket: d.path, Node: node})
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { p.Close() })
		own := ib.GID{0xfe, 0x80}
		for k := range 8 {
			own[8+k] = byte(p.Device().Node.PortGUID >> (56 - 8*k))
		}
		group := mad.MCMemberRecord{MGID: ib.GID{0xff, 0x12, 0xa0, 0x1c, 0xfe, 0x80, 14: 0x12, 15: 0x34}, PortGID: own, QKey: 0x11,
			PKey: ib.PKeyDefault, JoinState: 1}
		d.set(p, mad.AttrMCMemberRecord, mad.MemberMGID|mad.MemberPortGID|mad.MemberJoinState|mad.MemberQKey|mad.MemberPKey|mad.MemberSL|
			mad.MemberFlowLabel|
			mad.MemberTrafficClass, group.Append(nil))
		service := mad.ServiceRecord{ID: uint64(i) + 1, GID: own, PKey: ib.PKeyDefault, Lease: 0xffffffff}
		copy(service.Name[:], "service of "+node)
		d.set(p, mad.AttrServiceRecord, mad.ServiceComponentID|mad.ServiceComponentGID|mad.ServiceComponentPKey|mad.ServiceComponentLease|
			mad.ServiceComponentName, service.Append(nil))
		info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 64, RespTime: 18,
			ProducerType: 0xffffff}
		d.set(p, mad.AttrInformInfo, 0, info.Append(nil))
	}
}

// Tables of several packets, groups, services and subscriptions are shown with the same text.
func TestToolsAgree(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "saquery", "ibtracert", "ibroute", "ibaddr", "smpdump", "ibportstate", "perfquery", "iblinkinfo", "ibqueryerrors",
		"ibsysstat")
	d.manage()
	d.register()
	n := 0
	for line := range strings.Lines(agree) {
		words, lines, _ := strings.Cut(line, " | ")
		w := strings.Fields(words)
		if len(w) == 0 {
			continue
		}
		n++
		c := d.at("hca4", w[0], w[1:]...)
		var want bytes.Buffer
		c.Stdout = &want
		err := c.Run()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		if want.Len() == 0 && err == nil {
			t.Logf("%s: nothing is printed", strings.TrimSpace(words))
		}
		got, _, status := d.own(nil, "hca4", w[0], w[1:]...)
		if diff := cmp.Diff(compared(want.String(), lines), compared(got, lines)); diff != "" || status != c.ProcessState.ExitCode() {
			t.Errorf("%s: status %d, Debian's %d (-theirs +ours)\n%s", strings.TrimSpace(words), status, c.ProcessState.ExitCode(), diff)
		}
	}
	if n < 80 {
		t.Errorf("%d command lines", n)
	}
}
