package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// DAPL's own tests, over its two providers: scm exchanges addresses over a socket and moves the queue pairs itself, cma
// connects through librdmacm. dapltest ends with status 0 whatever happens; it prints totals only if all went well.
func TestDAPL(t *testing.T) {
	b := newBench(t)
	b.need("dapltest", "dtest")
	conf := filepath.Join(t.TempDir(), "dat.conf")
	var text string
	for i, addr := range b.addrs {
		text += fmt.Sprintf("scm%d u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 \"softvpi%d 1\" \"\"\n", i, i)
		text += fmt.Sprintf("cma%d u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"%v 0\" \"\"\n", i, addr)
	}
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"DAT_OVERRIDE=" + conf, "DAPL_SCM_NETDEV=lo"}
	for _, p := range []struct{ name, at string }{{"scm", "127.0.0.1"}, {"cma", "ADDR0"}} {
		client := func(test, rest string) string {
			return fmt.Sprintf("dapltest -T %s -s %s -D %s1 -n PORT %s", test, p.at, p.name, rest)
		}
		pairs := []pair{
			{name: "sends", client: client("T", "-i 20 -t 1 -w 1 -V -R BE client SR 4096 server SR 4096")},
			{name: "writes and reads", client: client("T", "-i 20 -t 2 -w 2 -V -R BE client RW 4096 server SR 1024 client RR 8192 server RW 4096 2")},
			{name: "pipelined writes", client: client("P", "-i 200 -p 4 -m p RW 65536 2")},
		}
		for i := range pairs {
			d := &pairs[i]
			d.server, d.says, d.env, d.endless = "dapltest -T S -D "+p.name+"0 -n PORT", `(?m)^(Total WQE|raw: RW, 200)`, env, true
		}
		pairs = append(pairs, pair{name: "dtest", server: "dtest -D -B 50 -b 16384 -P " + p.name + "0",
			client: "dtest -D -B 50 -b 16384 -P " + p.name + "1 -h " + p.at, env: env,
			says: "DAPL Test Complete. PASSED", server2: "DAPL Test Complete. PASSED"})
		t.Run(p.name, func(t *testing.T) { b.under(t).talkAll(t, pairs) })
	}
	t.Run("limits", func(t *testing.T) {
		out := b.under(t).run(env, "dapltest", "-T", "L", "-D", "scm0", "-w", "8", "limit_ia", "limit_pz", "limit_evd", "limit_ep",
			"limit_lmr")
		for _, what := range []string{"IAs opened", "PZs created", "EVDs created", "EPs created", "LMRs created"} {
			if !strings.Contains(out, what+": 1000") { // as many as it tries
				t.Errorf("it does not say %q:\n%s", what+": 1000", out)
			}
		}
	})
}
