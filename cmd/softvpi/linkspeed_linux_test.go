package main

import (
	"net"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestLinkSpeed_EveryTool: a port whose link is configured for 25 Gb/s shows that in every tool while somebody is at the other end of
// its wire, and speed 0 while nobody is, whether its adapter is disabled or not.
func TestLinkSpeed_EveryTool(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	far := filepath.Join(p.dir, "far")
	p.spawn(t, "up", "--skip-self-check", "--adapter", "port=192.0.2.1/24,noprobes,speed=25,datagram="+filepath.Join(p.dir, "near")+
		",peer="+far+",host=datagram:"+filepath.Join(p.dir, "machine")).until(t, "listening")
	show := func(tools map[string][2]string, up int) {
		t.Helper()
		for line, want := range tools {
			code, out, errs := p.run(t, words(line)...)
			if code != 0 || !regexp.MustCompile(want[up]).MatchString(out) {
				t.Errorf("%s: status %d; want what matches %s\n%s%s", line, code, want[up], out, errs)
			}
		}
	}
	tools := map[string][2]string{ // while it is down, and while it is up
		"status":        {`wire: .*, 0 Gb/s;`, `wire: .*, 25 Gb/s full duplex;`},
		"status --json": {`"speed": 0,`, `"speed": 25000000000,`},
		"counters get network_interface(port).bandwidth": {`(?m)Current Bandwidth +0\b`, `(?m)Current Bandwidth +25000000000\b`},
		"mlxtool show ports":                             {`(?m)port .* 0 Gb/s `, `(?m)port .* 25 Gb/s `},
		"mlx5cmd -Stat":                                  {`link_speed: 0.00 Gbps`, `link_speed: 25.00 Gbps`},
		"mlx5cmd -LinkSpeed -Name port -Query":           {`Current: +0.00 Gbps`, `Current: +25.00 Gbps`},
		"vstat": {`link_speed=0 Gbps\n(.*\n)+.*rate=0 Gbps\n(.*\n)+.*active_speed=0 Gbps`,
			`link_speed=25 Gbps\n(.*\n)+.*rate=25 Gbps\n(.*\n)+.*active_speed=25 Gbps`},
		"ibstat":                         {`(?m)Rate: 0$`, `(?m)Rate: 25$`},
		"MlxStat":                        {`(?m)Rate: +0 Gbps`, `(?m)Rate: +25 Gbps`},
		`ps -c "Get-NetAdapter"`:         {`(?m)^port .*0 bps$`, `(?m)^port .*25 Gbps$`},
		`ps -c "(Get-NetAdapter).Speed"`: {`(?m)^0$`, `(?m)^25000000000$`},
		`ps -c "(Get-SmbClientNetworkInterface).Speed"`: {`(?m)^0 bps$`, `(?m)^25 Gbps$`},
		`ps -c "(Get-NetAdapter).LinkSpeed"`:            {`(?m)^0 bps$`, `(?m)^25 Gbps$`},
	}
	show(tools, 0)
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: far, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	await.Eventually(t, "the port comes up", func() bool { return p.status(t).Adapters[0].Up })
	show(tools, 1)
	if code, _, errs := p.run(t, "adapter", "disable", "port"); code != 0 {
		t.Fatal(errs)
	}
	show(tools, 0)
}
