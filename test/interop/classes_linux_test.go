package interop

import (
	"fmt"
	"testing"
)

// testClasses connects with a traffic class that the program has chosen (RDMA_OPTION_ID_TOS), from either side: the messages of both
// connection managers carry it in their IP headers, as the packets of the connection do.
func testClasses(t *testing.T, g *guest) {
	g.drive(t)
	f := families[0]
	const class = 0x68 // DSCP 26
	x := exchange{name: "ucmatose -t", server: "ucmatose -b $OWN -p $PORT -c 3 -C 10 -S 1000", says: "return status 0",
		client:     fmt.Sprintf("ucmatose -s $SERVER -p $PORT -c 3 -C 10 -S 1000 -t %d", class),
		serverSays: "return status 0"}
	us, them := here(g, f), there(t, g, f)
	x.run(t, g, them, us, "18710")
	// Two that ask and one that answers: REQ (16) and RTU (20), REP (19).
	marked := func(from, messages string) int {
		return g.decoded(t, fmt.Sprintf("ip.src == %s && ip.dsfield == %d && infiniband.mad.attributeid in {%s}", from, class, messages))
	}
	if asked, answered := marked(ours.v4.String(), "16,20"), marked(theirs.v4.String(), "19"); asked < 6 || answered < 3 {
		t.Errorf("%d messages of ours and %d answers with the class", asked, answered)
	}
	x.run(t, g, us, them, "18711")
	if asked, answered := marked(theirs.v4.String(), "16,20"), marked(ours.v4.String(), "19"); asked < 6 || answered < 3 {
		t.Errorf("%d messages of Soft-RoCE and %d answers of ours with the class", asked, answered)
	}
}
